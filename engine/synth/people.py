"""Who talks where: the people, bots and conversations of the invented workspace.

Decides names, addresses, membership and what a conversation is about. Must never know what is said.
All names are invented; every address ends in `.example`.
"""

from dataclasses import dataclass

from engine.synth.chance import ident, pick, random_for

__all__ = ["CLIENT_DOMAINS", "TEAM_DOMAIN", "Conversation", "Person", "Workspace", "workspace"]

TEAM_DOMAIN = "brightlake.example"

_COMPANIES = (
    "northwind", "halvorsen", "kestrelbank", "ottoline", "marisol", "pinegrove", "tanuki", "zvezda", "qasr",
)  # fmt: skip
CLIENT_DOMAINS = tuple(f"{company}.example" for company in _COMPANIES)

_FIRST = (
    "Anna", "Boris", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Keiko", "Lars",
    "Maya", "Nikolai", "Olga", "Priya", "Quentin", "Rosa", "Stefan", "Tomoko", "Uwe", "Vera", "Wanda",
    "Xavier", "Yuki", "Zoe", "Søren", "Jürgen", "Łucja", "Noémie", "Анна", "Тимур",
)  # fmt: skip
_LAST = (
    "Abara", "Berg", "Castell", "Dvorak", "Eklund", "Fontaine", "Grieg", "Hoshino", "Ivanov", "Jansen",
    "Kimura", "Lindqvist", "Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rinaldi", "Sato", "Tanaka",
    "Ueda", "Volkov", "Weiss", "Yamada", "Zhang", "Đorđević", "Müller", "García", "Осипова", "Лебедев",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who writes. `role` is what the ready-made configuration makes of them.

    `listed` is false for guests, whom the list of users lacks; `profiled` says that their messages name them.
    `signs` is how a bot's messages say whose they are: by `user`, `username`, `bot_profile` or
    `bot_id` alone.
    """

    user_id: str
    handle: str
    real_name: str
    display_name: str
    email: str
    role: str
    bot_id: str = ""
    listed: bool = True
    profiled: bool = False
    signs: str = ""

    @property
    def author_id(self) -> str:
        """Their id as a reader sees it: a bot that does not post as a user goes by its bot id."""
        return self.user_id if self.signs in ("", "user") else self.bot_id

    @property
    def author(self) -> str:
        """Their name as a reader sees it: display name, real name, handle or id, the first that exists."""
        return self.display_name or self.real_name or self.handle or self.user_id


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where people talk.

    `sort` is `channel`, `group`, `mpim` or `dm`; `language` the tag of most of its talk; `weight` its share
    of the messages; `theme` what it is about.
    """

    conversation_id: str
    name: str
    sort: str
    theme: str
    language: str
    weight: int
    members: tuple[Person, ...]
    bots: tuple[Person, ...] = ()

    @property
    def folder(self) -> str:
        """Its folder in the export: direct messages go by id, the rest by name."""
        return self.conversation_id if self.sort == "dm" else self.name


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everybody and everywhere."""

    people: tuple[Person, ...]
    conversations: tuple[Conversation, ...]

    def named(self, name: str) -> Conversation:
        """The conversation of that name."""
        return next(c for c in self.conversations if c.name == name)

    def bot(self, name: str) -> Person:
        """The bot of that name."""
        return next(p for p in self.people if p.role == "bot" and p.real_name == name)


# name, how its messages are signed
_BOTS = (
    ("Build Robin", "user"),
    ("Pager Owl", "username"),
    ("Release Heron", "bot_profile"),
    ("Ledger Digest", "bot_id"),
    ("Standup Finch", "username"),
    ("Migration Wren", "bot_id"),
)

# name, theme, language, weight, bots. The weights fall as one over rank within each block.
_CHANNELS: tuple[tuple[str, str, str, int, tuple[str, ...]], ...] = (
    ("general", "office", "en", 40, ("Standup Finch",)),
    ("random", "office", "en", 30, ()),
    ("announcements", "office", "en", 6, ()),
    ("engineering", "backend", "en", 60, ("Build Robin",)),
    ("platform", "backend", "en", 34, ("Release Heron",)),
    ("frontend", "frontend", "en", 26, ()),
    ("mobile", "frontend", "en", 15, ()),
    ("data-pipelines", "data", "en", 24, ("Migration Wren",)),
    ("search-quality", "data", "en", 12, ()),
    ("ml-research", "data", "en", 11, ()),
    ("security", "security", "en", 16, ("Pager Owl",)),
    ("infrastructure", "backend", "en", 28, ("Pager Owl", "Release Heron")),
    ("incidents", "backend", "en", 22, ("Pager Owl",)),
    ("ci-status", "backend", "en", 58, ("Build Robin",)),
    ("alerts", "backend", "en", 44, ("Pager Owl",)),
    ("releases", "backend", "en", 14, ("Release Heron",)),
    ("code-review", "backend", "en", 32, ()),
    ("design", "frontend", "en", 13, ()),
    ("documentation", "office", "en", 8, ()),
    ("support", "support", "en", 50, ("Ledger Digest",)),
    ("support-escalations", "support", "en", 20, ()),
    ("billing", "billing", "en", 17, ("Ledger Digest",)),
    ("sales", "billing", "en", 19, ("Ledger Digest",)),
    ("customer-success", "support", "en", 16, ()),
    ("marketing", "office", "en", 9, ()),
    ("hiring", "office", "en", 7, ()),
    ("office-lisbon", "office", "en", 5, ()),
    ("office-tokyo", "office", "ja", 7, ()),
    ("reading-group", "data", "en", 4, ()),
    ("lunch", "office", "en", 6, ()),
    ("команда-ру", "backend", "ru", 26, ()),
    ("日本チーム", "support", "ja", 18, ()),
    ("中文讨论", "support", "zh", 6, ()),
    ("arabic-desk", "support", "ar", 4, ()),
    ("api-design", "backend", "en", 10, ()),
    ("on-call", "backend", "en", 12, ("Pager Owl",)),
    ("postmortems", "backend", "en", 4, ()),
    ("privacy", "security", "en", 6, ()),
    ("partners", "billing", "en", 8, ()),
    ("beta-feedback", "support", "en", 12, ()),
)


def _people() -> tuple[dict[str, list[Person]], tuple[Person, ...], tuple[Person, ...]]:
    """People by domain, the bots, and the guests. The same for every seed: a corpus differs in its talk."""
    taken: set[str] = set()
    by_domain: dict[str, list[Person]] = {}
    for domain, size, role in [(TEAM_DOMAIN, 64, "teammate"), *((d, 9, "client") for d in CLIENT_DOMAINS)]:
        rng = random_for("people", domain)
        people: list[Person] = []
        while len(people) < size:
            first, last = pick(rng, _FIRST), pick(rng, _LAST)
            name = f"{first} {last}"
            if name in taken:
                continue
            taken.add(name)
            number = len(taken)
            handle = f"{first[:1]}{last}".lower() if name.isascii() else f"guestbook{number}"
            people.append(
                Person(
                    ident("U", domain, name),
                    f"{handle}{number}",
                    name,
                    "" if number % 5 == 0 else (first if number % 7 == 0 else name),
                    f"{handle}{number}@{domain}",
                    role,
                )
            )
        by_domain[domain] = people
    bots = tuple(
        Person(
            ident("U", "bot", name),
            name.lower().replace(" ", ""),
            name,
            name,
            "",
            "bot",
            ident("B", name),
            listed=signs in ("user", "bot_id"),
            signs=signs,
        )
        for name, signs in _BOTS
    )
    guests = tuple(
        Person(ident("U", "guest", n), "", n, n, "", "unknown", listed=False, profiled=bool(n))
        for n in ("Gita Holm", "Pavel Guest", "")
    )
    return by_domain, bots, guests


def _conversations(
    by_domain: dict[str, list[Person]], bots: tuple[Person, ...], guests: tuple[Person, ...]
) -> tuple[Conversation, ...]:
    team = by_domain[TEAM_DOMAIN]
    bot = {b.real_name: b for b in bots}
    out = []
    for place, (name, theme, language, weight, with_bots) in enumerate(_CHANNELS):
        members = team[place % 8 :: 3] if place > 2 else list(team)
        if theme in {"support", "billing"} or language in {"ja", "ru"}:
            members = members[:14] + [p for d in CLIENT_DOMAINS for p in by_domain[d][place % 5 :: 4]]
        if name in {"beta-feedback", "support"}:
            members = [*members, *guests]
        cid = ident("C", name)
        out.append(
            Conversation(
                cid,
                name,
                "channel",
                theme,
                language,
                weight,
                tuple(members),
                tuple(bot[b] for b in with_bots),
            )
        )
    for place, (company, domain) in enumerate(zip(_COMPANIES, CLIENT_DOMAINS, strict=True)):
        language = {"tanuki": "ja", "zvezda": "ru", "qasr": "ar"}.get(company, "en")
        inside = tuple(by_domain[domain] + team[place::12])
        out.append(
            Conversation(ident("C", company), f"ext-{company}", "channel", "support", language, 34 - 3 * place, inside)
        )
        sort = "group" if place % 3 == 0 else "channel"
        name = f"ext-{company}-rollout"
        cid = ident("G" if sort == "group" else "C", name)
        few = tuple(by_domain[domain][:4] + team[place + 5 :: 16])
        out.append(Conversation(cid, name, sort, "backend", "en", 9 - place // 2, few))
    four = (team[0], team[7], by_domain[CLIENT_DOMAINS[0]][0], by_domain[CLIENT_DOMAINS[0]][1])
    mpim = "mpdm-" + "--".join(p.handle for p in four) + "-1"
    out.append(Conversation(ident("G", mpim), mpim, "mpim", "support", "en", 3, four))
    pairs = ((team[1], team[2]), (team[3], by_domain[CLIENT_DOMAINS[2]][0]))
    for one, other in pairs:
        cid = ident("D", one.user_id, other.user_id)
        out.append(Conversation(cid, f"{one.author}, {other.author}", "dm", "office", "en", 3, (one, other)))
    return tuple(out)


def workspace() -> Workspace:
    """The workspace: about 60 conversations, 145 people, six bots and three guests."""
    by_domain, bots, guests = _people()
    people = tuple(p for people in by_domain.values() for p in people) + bots + guests
    return Workspace(people, _conversations(by_domain, bots, guests))
