"""The commands and their arguments. Each loads what it needs when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from hermes.cli.codes import OK, USAGE
from hermes.cli.invocation import Invocation
from hermes.config.nearest import nearest

app = typer.Typer(
    name="hermes",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Another file than HERMES_HOME/config.yaml.")
]


def run_command(arguments: Sequence[str], invocation: Invocation) -> int:
    """Runs one command; usage errors are one sentence and the code 2."""
    try:
        code: Any = app(list(arguments), prog_name="hermes", standalone_mode=False, obj=invocation)
    except TyperException as error:
        sys.stderr.write(f"hermes: {_with_cure(error.format_message(), arguments)}\n")
        return USAGE
    except typer.Abort:
        return USAGE
    return code if isinstance(code, int) else OK


def names() -> list[str]:
    """The commands there are, as typed."""
    groups = [group.name for group in app.registered_groups]
    single = [command.name for command in app.registered_commands]
    return [name for name in (*single, *groups) if name]


def _with_cure(text: str, arguments: Sequence[str]) -> str:
    command = next((one for one in arguments if not one.startswith("-")), "")
    if command and command not in names():
        meant = nearest(command, names())
        hint = f" (did you mean {meant}?)" if meant else ""
        return f"there is no command {command!r}{hint}; `hermes --help` lists them"
    where = f"hermes {command} --help" if command else "hermes --help"
    return f"{text} See `{where}`." if text.endswith("?") else f"{text.rstrip('.')}; see `{where}`"


@app.command("run")
def run(ctx: typer.Context, config: ConfigFile = None) -> int:
    """Start the gateway and serve until SIGTERM or Ctrl-C. SIGHUP reloads the configuration."""
    from hermes.app.process import run as serve

    return serve(config, debug=ctx.obj.debug)


@app.command("check")
def check(ctx: typer.Context, config: ConfigFile = None) -> int:
    """Say whether `run` would accept the configuration; if not, all that is wrong with it."""
    from hermes.cli.check import check as do

    return do(config, ctx.obj)


@app.command("status")
def status(
    ctx: typer.Context,
    page_url: Annotated[
        bool, typer.Option("--page-url", help="Only the page's address, with its token.")
    ] = False,
) -> int:
    """Show what works, what does not, and why. Exit code 1 when a part is bad or the gateway is not ready."""
    from hermes.cli import status as do

    return do.page_url(ctx.obj) if page_url else do.status(ctx.obj)


@app.command("send")
def send(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="PLATFORM:CHAT or PLATFORM:CHAT:THREAD.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads standard input.")],
) -> int:
    """Send a message. It is in the durable outbox when this returns, also while no gateway runs."""
    from hermes.cli.letters import send as do

    return do(target, text, ctx.obj)


@app.command("chat")
def chat(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="What to say; - reads standard input.")
    ] = None,
) -> int:
    """Talk to it. With TEXT only the answer is printed. Works without a gateway too: one runs for the chat."""
    from hermes.cli.talk import chat as do

    return do(text, ctx.obj)


@app.command("health")
def health(ctx: typer.Context, config: ConfigFile = None) -> int:
    """Ask /readyz of the gateway on this machine: exit code 0 when ready, else 1 and the reasons."""
    from hermes.cli.probe import health as do

    return do(config, ctx.obj)


@app.command("version")
def version(ctx: typer.Context) -> int:
    """Print the version."""
    from hermes.cli.overview import print_version

    return print_version(ctx.obj)


letters = typer.Typer(rich_markup_mode=None, help="What could not be delivered (out:N) or read (in:N).")
app.add_typer(letters, name="dead-letters")

LetterId = Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it: out:12 or in:7.")]


@letters.command("list")
def list_letters(ctx: typer.Context) -> int:
    """List them, each with its reason."""
    from hermes.cli.letters import list_letters as do

    return do(ctx.obj)


@letters.command("retry")
def retry(ctx: typer.Context, letter: LetterId) -> int:
    """Try one once more."""
    from hermes.cli.letters import retry as do

    return do(letter, ctx.obj)


@letters.command("drop")
def drop(ctx: typer.Context, letter: LetterId) -> int:
    """Take one off the list."""
    from hermes.cli.letters import drop as do

    return do(letter, ctx.obj)


@app.command("usage")
def usage(
    ctx: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="How many days are shown.")] = 7,
) -> int:
    """Calls, tokens and money of everybody: today by model, then by day. /usage in a chat shows one's own."""
    from hermes.cli.usage import usage as do

    return do(days, ctx.obj)


pairing = typer.Typer(rich_markup_mode=None, help="Who waits to be let in, and who was (`pairing: true`).")
app.add_typer(pairing, name="pairing")


@pairing.command("list")
def list_pairing(ctx: typer.Context) -> int:
    """Strangers who were shown a code, and everybody who was let in."""
    from hermes.cli.pairing import list_people as do

    return do(ctx.obj)


@pairing.command("approve")
def approve_pairing(
    ctx: typer.Context,
    code: Annotated[str, typer.Argument(help="The code that the stranger was shown.")],
    role: Annotated[str, typer.Option(help="user or guest.")] = "user",
) -> int:
    """Lets in the person who was shown this code."""
    from hermes.cli.pairing import approve as do

    return do(code, role, ctx.obj)


@pairing.command("revoke")
def revoke_pairing(
    ctx: typer.Context, who: Annotated[str, typer.Argument(help="PLATFORM:USER, as `list` shows them.")]
) -> int:
    """Makes somebody a stranger again."""
    from hermes.cli.pairing import revoke as do

    return do(who, ctx.obj)


learned = typer.Typer(rich_markup_mode=None, help="What repairs taught about models, beyond the configuration.")
app.add_typer(learned, name="learned")


@learned.command("list")
def list_learned(ctx: typer.Context) -> int:
    """List it, each fact until it is tried out again."""
    from hermes.cli.learned import list_learned as do

    return do(ctx.obj)


@learned.command("clear")
def clear_learned(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(metavar="[PROVIDER/MODEL]", help="One model; else all.")] = "",
) -> int:
    """Forget it: it is found out anew."""
    from hermes.cli.learned import clear as do

    return do(target, ctx.obj)


slack = typer.Typer(rich_markup_mode=None, help="What Slack must be told about the app.")
app.add_typer(slack, name="slack")


@slack.command("manifest")
def slack_manifest(
    ctx: typer.Context,
    address: Annotated[
        str, typer.Option(metavar="URL", help="For mode http: the public address, https://HOST/hooks/slack.")
    ] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="What people see.")] = "Hermes",
) -> int:
    """Print the app manifest, to be pasted where a Slack app is created."""
    from hermes.cli.slack import print_manifest as do

    return do(address, name)


explain = typer.Typer(rich_markup_mode=None, help="Why Hermes does what it does.")
app.add_typer(explain, name="explain")


@explain.command("error")
def explain_error(
    ctx: typer.Context,
    jsonl: Annotated[
        Path | None,
        typer.Option("--jsonl", metavar="FILE", help="One recorded error a line; - is standard input."),
    ] = None,
    platform: Annotated[
        bool, typer.Option("--platform", help="Errors of platforms, not of providers.")
    ] = False,
    provider: Annotated[str, typer.Option(metavar="NAME", help="Whose error: openai, telegram, ...")] = "",
    status: Annotated[int | None, typer.Option(help="The HTTP status.")] = None,
    exception: Annotated[str | None, typer.Option(metavar="CLASS", help="The exception's class.")] = None,
    body: Annotated[str | None, typer.Option(metavar="TEXT", help="The body, JSON or text.")] = None,
) -> int:
    """Say what an error means and what follows: --jsonl FILE, or --status, --exception and --body of one."""
    from hermes.cli import explain_error as do

    if jsonl is not None:
        return do.explain_file(jsonl, platform=platform, invocation=ctx.obj)
    if status is None and exception is None and body is None:
        raise typer.BadParameter("nothing to explain: give --jsonl FILE, or --status, --exception or --body")
    return do.explain_one(do.record(provider, status, exception, body), platform=platform, invocation=ctx.obj)


@explain.command("policy")
def explain_policy(ctx: typer.Context, config: ConfigFile = None) -> int:
    """Print every bound of every retry, and the cure of every failure. [In brackets]: not in this version."""
    from hermes.cli.explain_policy import explain_policy as do

    return do(config, ctx.obj)


@explain.command("config")
def explain_config(ctx: typer.Context, config: ConfigFile = None) -> int:
    """Print the configuration in force and where each value came from. Secrets are not shown."""
    from hermes.cli.explain_config import explain_config as do

    return do(config, ctx.obj)
