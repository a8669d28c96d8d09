"""Who is asking, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from kster.server.auth.keys import SCOPES, Keys
from kster.server.errors import ApiError


class Unauthorised(ApiError):
    """A key is needed and none was sent."""

    status, kind = 401, "ApiKeyMissingException"


class Forbidden(ApiError):
    status, kind = 403, "ForbiddenException"


class NotFound(ApiError):
    status, kind = 404, "NotFoundException"


@dataclass(frozen=True, slots=True)
class Principal:
    """A client: a key, or anybody on this machine where no keys are needed."""

    key_id: int | None
    scope: str
    name: str | None = None  # of the key: the author of what is added and changed with it

    def may(self, scope: str) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def require(self, scope: str) -> None:
        if not self.may(scope):
            raise Forbidden(f"this needs a key with scope {scope}; this one has {self.scope}")


LOCAL = Principal(None, "admin")


def token_of(request: Request) -> str | None:
    """The key in a request's headers or query."""
    headers, query = request.headers, request.query_params
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "deepl-auth-key") and token.strip():
        return token.strip()
    return (
        headers.get("x-api-key")
        or headers.get("mmt-apikey")
        or query.get("api_key")
        or query.get("key")
        or None
    )


def identify(keys: Keys, token: str | None, *, required: bool) -> Principal:
    """Raises if the key is unknown, or missing where one is needed.

    Where none is needed and none is in use, whatever a client sends is ignored: many clients always send
    something.
    """
    if not required and (not token or not keys.any_in_use):
        return LOCAL
    if not token:
        raise Unauthorised("an API key is needed; send it as `api_key` or `Authorization: Bearer KEY`")
    key = keys.find(token)
    if key is None:
        raise Forbidden("this API key is unknown or revoked")
    return Principal(key.id, key.scope, key.name)


def identified(request: Request) -> Principal | ApiError:
    """Who is asking, by headers and query, or why they are refused; looked up once a request."""
    state = request.scope["state"]
    if "principal" not in state:
        engine = request.app.state.engine
        try:
            state["principal"] = identify(
                engine.keys, token_of(request), required=engine.settings.keys_required
            )
        except ApiError as refusal:
            state["principal"] = refusal
    return state["principal"]
