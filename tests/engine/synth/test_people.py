from engine.synth.people import CLIENT_DOMAINS, TEAM_DOMAIN, workspace


def test_the_workspace_is_the_same_every_time() -> None:
    assert workspace() == workspace()


def test_about_sixty_conversations_of_every_sort() -> None:
    place = workspace()
    assert len(place.conversations) == 61
    assert {c.sort for c in place.conversations} == {"channel", "group", "mpim", "dm"}
    assert len({c.folder for c in place.conversations}) == len({c.conversation_id for c in place.conversations}) == 61


def test_every_member_but_guests_and_some_bots_is_listed() -> None:
    place = workspace()
    everyone = {p.user_id: p for c in place.conversations for p in (*c.members, *c.bots)}
    missing = sorted(p.author for p in everyone.values() if not p.listed)
    assert missing == ["Gita Holm", "Pager Owl", "Pavel Guest", "Release Heron", "Standup Finch", "UA09FF51B"]


def test_roles_follow_from_addresses() -> None:
    for person in workspace().people:
        domain = person.email.partition("@")[2]
        nobody = "bot" if person.bot_id else "unknown"
        expected = {TEAM_DOMAIN: "teammate", "": nobody} | dict.fromkeys(CLIENT_DOMAINS, "client")
        assert person.role == expected[domain]


def test_no_name_or_room_holds_the_words_the_stories_count() -> None:
    place = workspace()
    names = [p.author for p in place.people] + [c.name for c in place.conversations]
    assert not [n for n in names if "openai" in n.lower() or "client" in n.lower() or "deployment" in n.lower()]
