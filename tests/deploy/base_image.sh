#!/usr/bin/env bash
# base_image.sh FOLDER: fills FOLDER, from the machine's own Debian mirror, with what a machine needs that can
# pull no image:
#   python-3.13-slim.tar   a root file system that stands in for the image of that name. It is Debian 13's
#                          Python, not the official build. The machine's certificates go in, since it may
#                          sit behind a proxy; that is why it must never be published.
#   cli-plugins/           Debian 13's docker compose, for clients that come without it.
set -euo pipefail
folder=$1
mirror=$({ cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null || true; } |
    awk '/^URIs:/{print $2; exit} /^deb /{for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) {print $i; exit}}')
[[ -n $mirror ]] || { echo "base_image.sh: apt's sources name no mirror" >&2; exit 1; }
mkdir -p -- "$folder"
part=$(mktemp -d "$folder/part.XXXXXX")
trap 'rm -rf -- "$part"' EXIT
mmdebstrap --quiet --variant=minbase \
    --include=python3,python3-pip,python3-venv,ca-certificates,netbase,tzdata \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED' \
    --customize-hook='for n in python python3 python3.13; do ln -sf /usr/bin/python3.13 "$1/usr/local/bin/$n"; done' \
    --customize-hook='for n in pip pip3; do ln -sf /usr/bin/pip3 "$1/usr/local/bin/$n"; done' \
    --customize-hook='mkdir -p "$1/usr/local/share/ca-certificates"' \
    --customize-hook='cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null && chroot "$1" update-ca-certificates >/dev/null 2>&1 || true' \
    --customize-hook='chroot "$1" sh -c "mkdir /plugins && cd /plugins && apt-get -qq download docker-compose" >/dev/null 2>&1 || true' \
    --customize-hook="cp \"\$1\"/plugins/*.deb '$part/' 2>/dev/null; rm -rf \"\$1/plugins\"" \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/etc/resolv.conf "$1"/etc/hostname' \
    trixie "$part/root.tar" "$mirror"
for package in "$part"/*.deb; do
    [[ -e $package ]] || continue
    dpkg-deb -x "$package" "$part/unpacked"
    mkdir -p "$folder/cli-plugins"
    find "$part/unpacked" -path '*/cli-plugins/docker-*' -exec cp -- '{}' "$folder/cli-plugins/" \;
done
mv -- "$part/root.tar" "$folder/python-3.13-slim.tar"
