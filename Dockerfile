# Hermes in a container: two stages of one base image, packages checked by hash, no root at run time.
#   docker build -t hermes .        docker compose up -d
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
WORKDIR /src
RUN python -m venv /opt/hermes
COPY requirements.lock ./
RUN /opt/hermes/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY hermes ./hermes
RUN /opt/hermes/bin/python -m pip install --quiet --no-build-isolation --no-deps . \
    && /opt/hermes/bin/python -m compileall -q /opt/hermes/lib

FROM python:3.13-slim
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin hermes \
    && install --directory --owner=hermes --group=hermes --mode=0700 /data
COPY --from=build /opt/hermes /opt/hermes
# All of 0.0.0.0 is inside the container; compose.yaml publishes it on the host's 127.0.0.1 only.
ENV PATH=/opt/hermes/bin:$PATH LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 \
    HERMES_HOME=/data HERMES_BIND=0.0.0.0:8642
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8642
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 CMD ["hermes", "health"]
ENTRYPOINT ["hermes"]
CMD ["run"]
