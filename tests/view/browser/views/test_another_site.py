"""A second tab of another site: it reads nothing, starts nothing, and shows the page in no frame of its own."""

from view_pages import Look, Site

ASKS = """async ([site, run, token]) => {
  const told = {}
  const ask = async (name, address, init) => {
    told[name] = await fetch(site + address, init).then(() => 'answered', () => 'refused')
  }
  const body = JSON.stringify({ id: run })
  const headers = { 'content-type': 'application/json', 'X-Refold-Token': token }
  await ask('read', '/api/runs')
  await ask('blind', '/api/runs', { mode: 'no-cors' })
  await ask('act', '/api/act/offered', { method: 'POST', headers, body })
  await ask('blind act', '/api/act/offered', { method: 'POST', mode: 'no-cors', body })
  return told
}"""


def test_another_site_is_refused_even_with_the_token(looking: Look, site: Site, acted: Site) -> None:
    page = looking(acted.at("states"), elsewhere=True, audited=True)
    asked = [site.ids["game"], site.token]
    told = page.evaluate(ASKS, [site.address, *asked])
    assert told == dict.fromkeys(("read", "blind", "act", "blind act"), "refused")
    own = page.evaluate(ASKS, [acted.address, acted.ids["game"], acted.token])
    assert own == dict.fromkeys(told, "answered")


def test_no_action_without_the_token(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "game"), refused=True)
    for token in ("", "x" * 32):
        status = page.evaluate(
            """([run, token]) => fetch('/api/act/offered', {
              method: 'POST', headers: { 'content-type': 'application/json', 'X-Refold-Token': token },
              body: JSON.stringify({ id: run }),
            }).then(answer => answer.status)""",
            [acted.ids["game"], token],
        )
        assert status in (401, 403)
    assert "token" not in page.url


def test_the_token_is_kept_in_the_tab_and_not_in_the_address(looking: Look, acted: Site) -> None:
    page = looking(acted.at("run", "waiting", act=True))
    page.locator(".ask form").wait_for()
    assert acted.token not in page.url
    page.reload()
    page.locator(".ask form").wait_for()
