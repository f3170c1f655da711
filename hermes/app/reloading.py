"""SIGHUP: everything is validated, then one frozen object is swapped; a bad file keeps the last good (R42)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.app import settings
from hermes.app.attaching import reattach
from hermes.app.catalogue import NotBuilt, refresh_platform
from hermes.app.compacting import recompact
from hermes.app.instructions import instructions
from hermes.app.parts import Gateway, Machine
from hermes.app.relinking import Relinked, close_after_use, relink
from hermes.app.secrets import NoCredential
from hermes.config.errors import ConfigError
from hermes.config.load import Loaded, load_config
from hermes.config.model import Config
from hermes.config.reload import diff
from hermes.runtime.logs import get_logger

log = get_logger(__name__)


class Reloader:
    """Applies what can be applied live and says what needs a restart."""

    def __init__(self, gateway: Gateway, machine: Machine, loaded: Loaded) -> None:
        self._gateway = gateway
        self._machine = machine
        self._loaded = loaded
        self._environ = machine.environment.variables
        self.on_page: Callable[[Config], None] = lambda config: None
        """Told what the page's server is to obey; set once it listens."""

    def reload(self) -> str:
        """Never raises: a file that cannot be used changes nothing and is told. What came of it, in words."""
        from hermes.app.catalogue import PLATFORM_MODELS, PROVIDER_MODELS
        from hermes.config.environment import Environment

        environment = Environment.read()
        path = next((Path(s) for s in self._loaded.sources if s != "environment"), None)
        try:
            loaded = load_config(
                path, home=self._machine.home, environ=environment.variables,
                platform_models=PLATFORM_MODELS, provider_models=PROVIDER_MODELS, problems=environment.problems,
            )  # fmt: skip
            relinked = relink(self._gateway, self._machine, loaded.config, self._environ, environment.variables)
        except ConfigError as error:
            log.error("reload_refused", kept="the last good configuration", problems=error.render())
            return "The file has problems, so the last good configuration is kept. `hermes check` lists them."
        except (NoCredential, NotBuilt) as error:
            log.error("reload_refused", kept="the last good configuration", problems=str(error))
            return f"The last good configuration is kept: {error}"
        changes = diff(self._gateway.config, loaded.config)
        self._apply(loaded.config)
        self._relink(loaded.config, relinked, environment.variables)
        waits = [path for path in changes.link if not path.startswith("providers.")]
        log.info(
            "reloaded", live=list(changes.live), restarted=[f"providers.{name}" for name in relinked.made],
            needs_restart=[*waits, *changes.process],
        )  # fmt: skip
        self._environ = environment.variables
        self._loaded = loaded
        self._gateway.config = loaded.config
        waiting = [*waits, *changes.process]
        return "Read again." if not waiting else f"Read again; these wait for a restart: {', '.join(waiting)}."

    def _apply(self, config: Config) -> None:
        """Keys that are read anew by the next message; access is in force at once."""
        g = self._gateway
        g.access.policies = settings.access_policies(config)
        for name, section in config.platforms.items():
            platform = g.platforms.find(name) if section.enabled else None
            if platform is not None:
                refresh_platform(platform, section)
        g.ingest.group_sessions_per_user = config.gateway.group_sessions_per_user
        g.ingest.merge_window = config.agent.merge_window
        g.lane.merge_window = config.agent.merge_window
        g.lane.turn_deadline = config.agent.turn_deadline
        g.runner.max_steps = config.agent.max_turns
        g.runner.turn_deadline = config.agent.turn_deadline
        g.runner.zone = g.runner.money.zone = settings.zone(config)
        g.runner.money.caps = settings.caps(config)
        if g.dispatch.goals is not None:
            g.dispatch.goals.max_turns = config.goals.max_turns
        g.runner.turn_tokens = config.agent.budget.turn_tokens
        g.runner.instructions = instructions(self._machine.home)
        g.replies.max_age = config.gateway.max_age
        g.outbox.max_age = config.gateway.max_age
        g.dispatch.settings = settings.dispatch_settings(config, g.dispatch.settings.ready_at)
        if g.dispatch.sessions is not None:
            g.dispatch.sessions.reset = settings.reset_policy(config)
            g.dispatch.sessions.zone = settings.zone(config)
        g.runner.park_for = config.gateway.max_age
        g.governor.limits = settings.limits(config)
        g.governor.policy = settings.breaker_policy(config)
        g.governor.refresh_limits()
        g.sweep.policy = settings.sweep_policy(config)
        g.links.policy = settings.reconnect_policy(config)
        g.health.settings = settings.health_settings(config)
        g.turns.uncertain = config.gateway.delivery.uncertain.value
        g.views.settings = settings.view_settings(config)
        g.pacer.intervals = settings.pace(config.platforms)
        g.homes.configured = settings.home_channels(config)
        g.people.policy = settings.pairing_policy(config)
        g.toolbox.guest_tools = frozenset(config.tools.guest_tools)
        g.toolbox.result_chars = config.tools.max_result_bytes
        g.toolbox.question_timeout = config.approvals.timeout
        g.toolbox.guardrails = settings.guardrails(config)
        g.toolbox.max_parallel = config.tools.max_parallel
        reattach(g, self._machine, config)
        self.on_page(config)

    def _relink(self, config: Config, relinked: Relinked, environ: Mapping[str, str]) -> None:
        """The next call goes to what the configuration names now."""
        g = self._gateway
        g.providers.clear()
        g.providers.update(relinked.providers)
        g.runner.pipeline.targets = tuple(settings.targets(config, g.providers))
        g.runner.pipeline.policy = settings.recovery_policy(config, environ)
        g.runner.pipeline.repairs.use(relinked.pools)
        recompact(g, config, environ)
        for name in relinked.made:
            g.governor.forget(name)
        if relinked.over:
            self._machine.supervisor.spawn(close_after_use(g, relinked.over), "providers.close")
