"""The sets of the folder, and the page of one: from the list to a task's run, and back by the address."""

import re

from playwright.sync_api import expect
from view_pages import Look, Site


def test_a_set_leads_to_the_runs_of_its_tasks(looking: Look, site: Site) -> None:
    page = looking(site.at())
    page.get_by_role("link", name=re.compile("nightly")).click()
    rows = page.locator(".set-tasks tbody tr")
    expect(rows).to_have_count(12)
    expect(page.get_by_text("6 of 12 tasks ended")).to_be_visible()
    expect(page.get_by_text("mean score 0.500")).to_be_visible()
    page.get_by_role("button", name=re.compile("^errored")).click()
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("<b>five times</b>")
    page.reload()
    expect(rows).to_have_count(1)
    page.get_by_role("button", name=re.compile("^all")).click()
    page.get_by_role("link", name="links", exact=True).click()
    expect(page.locator("h1").first).to_contain_text("Check every link")


def test_a_set_that_is_not_there_is_told(looking: Look, site: Site) -> None:
    page = looking(site.at("set", "weekly"), refused=True)
    expect(page.get_by_text("there is no set 'weekly' here")).to_be_visible()
