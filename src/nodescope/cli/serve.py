"""`nodescope serve`: the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nodescope.archive.memory import use_one_allocator
from nodescope.cli import options


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "serve",
        run,
        description="Serve the page of a recording, and its API, until it is interrupted. Follows\n"
        "a recording that grows. Only this machine can reach it unless --host says otherwise,\n"
        "which needs a token or client certificates. Nothing is ever written to the archive.",
        examples=[
            ("nodescope serve --open", "the page, in a browser"),
            ("nodescope serve --archive incident.nodescope --port 0", "a bundle, on any free port"),
            ("nodescope serve --host 10.0.0.7 --token-file token", "for others, with a token"),
        ],
    )
    options.add_archive(parser)
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS",
                        help="address to listen on (default: 127.0.0.1)")  # fmt: skip
    parser.add_argument("--port", type=_port, default=8787, metavar="N",
                        help="port; 0 takes any free one (default: 8787)")  # fmt: skip
    parser.add_argument("--token-file", type=Path, metavar="FILE",
                        help="require the token in this file")  # fmt: skip
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="TLS certificate")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="key of the certificate")
    parser.add_argument("--client-ca", type=Path, metavar="FILE",
                        help="require client certificates of this authority")  # fmt: skip
    options.add_places(parser)
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from nodescope.errors import UsageError

    use_one_allocator()
    try:
        from nodescope.web.server import Address, serve
        from nodescope.web.static_files import is_built
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the page needs {error.name}", hint="pip install 'nodescope[web]'"
        ) from error
    address = Address(
        args.host, args.port, args.token_file, args.tls_cert, args.tls_key, args.client_ca
    )
    path = options.archive_path(args)
    if not is_built():
        _say("the page is not built: only the API is served; run `make page` in the source tree")

    def ready(link: str) -> None:
        print(f"nodescope serves {path} at {link}", flush=True)
        if args.open:
            import webbrowser

            webbrowser.open(link)

    serve(path, address, ready=ready, say=_say, show=_show, places=options.places(args))
    return 0


def _say(line: str) -> None:
    print(f"nodescope: {line}", file=sys.stderr, flush=True)


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        end = "\r\x1b[K" if done == total else f"\rreading ahead: {done} of {total} segments"
        print(end, end="", file=sys.stderr, flush=True)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"not a port: {text!r}; 0 takes any free one")
    return int(text)
