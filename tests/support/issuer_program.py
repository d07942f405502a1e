"""The process of tests.support.issuer: answers HTTP in threads, and its parent, a line of JSON each, on its pipe."""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm


class Keys:
    """Those that are published, and the one that signs."""

    def __init__(self) -> None:
        self.published: list[dict[str, Any]] = []
        self.asked, self.silent = 0, False
        self._numbers = 0
        self.rotate("RS256", keep=False)

    def rotate(self, algorithm: str, *, keep: bool) -> None:
        self._numbers += 1
        self.name, self.algorithm = f"key-{self._numbers}", algorithm
        if algorithm.startswith("ES"):
            self.key: Any = ec.generate_private_key(ec.SECP256R1())
            public = ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        else:
            self.key = rsa.generate_private_key(65537, 2048)
            public = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        told = {**public, "kid": self.name, "use": "sig", "alg": algorithm}
        self.published = [*(self.published if keep else []), told]

    def token(self, claims: dict[str, Any]) -> str:
        headers = {"kid": self.name, **claims.pop("headers_", {})}
        algorithm = claims.pop("algorithm_", self.algorithm)
        key = claims.pop("key_", self.key)
        usual = {"sub": "alice", "aud": "hopline", "iss": URL, "exp": time.time() + 60, "iat": time.time()}
        said = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        headers = {name: value for name, value in headers.items() if value is not None}
        return jwt.encode(said, key, algorithm, headers=headers)


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        KEYS.asked += self.path == "/keys"
        while KEYS.silent:
            time.sleep(0.05)
        told = {
            "/keys": {"keys": KEYS.published},
            "/.well-known/openid-configuration": {"issuer": URL, "jwks_uri": f"{URL}/keys"},
        }.get(self.path)
        self.send_response(200 if told else 404)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    what = asked.pop("what")
    if what == "token":
        return {"token": KEYS.token(asked)}
    if what == "rotate":
        KEYS.rotate(asked["algorithm"], keep=asked["keep"])
    if what == "silent":
        KEYS.silent = asked["silent"]
    return {"asked": KEYS.asked}


def _say(said: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
SERVER.daemon_threads = True
SCHEME = "http"
if sys.argv[1:]:
    CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CONTEXT.load_cert_chain(sys.argv[1])
    SERVER.socket = CONTEXT.wrap_socket(SERVER.socket, server_side=True)
    SCHEME = "https"
URL = f"{SCHEME}://localhost:{SERVER.server_address[1]}"
KEYS = Keys()
threading.Thread(target=SERVER.serve_forever, daemon=True).start()
_say({"url": URL})
for line in sys.stdin:
    _say(_answer(json.loads(line)))
