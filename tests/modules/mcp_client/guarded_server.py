"""A server that wants a login, with the authorization server of `mcp`: `guarded_server.py PORT FOLDER LIFE`.

Access tokens live for LIFE seconds. Each step of a login adds a line to FOLDER/steps. Everybody is let in.
"""

import secrets
import sys
import time
from pathlib import Path

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

PORT, FOLDER, LIFE = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
URL = f"http://127.0.0.1:{PORT}"


def noted(step: str) -> None:
    with (FOLDER / "steps").open("a") as file:
        file.write(f"{step}\n")


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refreshing: dict[str, RefreshToken] = {}
        self.tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        noted("register")
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        noted("authorize")
        code = AuthorizationCode(
            code=secrets.token_hex(20),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    def issue(self, client_id: str, scopes: list[str]) -> OAuthToken:
        access, refresh = secrets.token_hex(20), secrets.token_hex(20)
        ends = int(time.time()) + LIFE
        resource = f"{URL}/mcp"
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=ends, resource=resource
        )
        self.refreshing[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFE, scope=" ".join(scopes) or None)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        noted("exchange")
        return self.issue(str(client.client_id), authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refreshing.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        noted("refresh")
        del self.refreshing[refresh_token.token]
        return self.issue(str(client.client_id), scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.tokens.get(token)
        return found if found is not None and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)
        self.refreshing.pop(token.token, None)


server = MCPServer(
    "guarded",
    log_level="ERROR",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(URL),
        resource_server_url=AnyHttpUrl(f"{URL}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=True,
    ),
)


@server.tool()
def secret() -> str:
    return "42"


if __name__ == "__main__":
    server.run("streamable-http", port=PORT)
