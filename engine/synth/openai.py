"""The story of what clients say about OpenAI: 105 messages in ten conversations, some of them doubts.

Decides the words and the places. No text here repeats the words of the question "what concerns do clients
have about OpenAI" but the name itself, save the few that are planted to hold "client" too.
"""

from random import Random

from engine.synth.chance import pick, random_for
from engine.synth.people import Conversation, Person, Workspace
from engine.synth.planted import Call, Said, Story, moment
from engine.synth.talk import Text

__all__ = [
    "CLIENT_WORD_TOTAL",
    "DOUBT_WORDS",
    "FROM_CLIENTS",
    "OPENAI_BODY_BYTES",
    "openai_messages",
    "openai_story",
]

FROM_CLIENTS = 105
"""Messages by clients that contain the name."""

CLIENT_WORD_TOTAL = 39
"""Messages by anybody that contain the name and the word "client"."""

_OWN_CLIENT_WORD = 3
_BY_BOTS = 3
_OTHERS = 48
"""Messages by teammates that contain the name and not the word."""

OPENAI_BODY_BYTES = 68_300
"""Bytes of text in the 105: with about 285 of other fields each they make 95 to 101 kB as JSON lines."""

_ROOMS = (
    "ext-northwind", "ext-halvorsen", "ext-kestrelbank", "ext-ottoline", "ext-marisol", "ext-tanuki",
    "ext-zvezda", "support", "beta-feedback", "billing",
)  # fmt: skip
"""Where clients say it. No other conversation has it from a client."""

_TEAM_ROOMS = (
    "sales",
    "customer-success",
    "ml-research",
    "engineering",
    "support-escalations",
    "privacy",
    "ext-pinegrove",
)

DOUBTS: dict[str, tuple[str, ...]] = {
    "cost": (
        "Our OpenAI bill tripled between two invoices and finance now wants a hard ceiling before we go on.",
        "At our volume OpenAI costs us more per ticket than the person who used to answer it.",
        "We budgeted 4 k a month for OpenAI and are at 11 k on the 20th, this does not scale for us.",
        "Nobody here can say what OpenAI will charge next quarter, token maths changes with every prompt.",
    ),
    "residency": (
        "Our regulator says nothing leaves the EU, and with OpenAI we cannot show where a prompt is stored.",
        "Legal stopped the OpenAI pilot: patient notes must stay in Germany, full stop.",
        "Which country do the logs sit in when you pass our tickets to OpenAI? Without that we cannot sign.",
        "The works council will not accept OpenAI as long as employee data crosses the Atlantic.",
    ),
    "limits": (
        "Between nine and ten we hit 429 from OpenAI on every third call, the agents just sit there.",
        "OpenAI throttles us exactly when our shop is busiest, and a higher tier takes weeks to get.",
        "The batch that used to take an hour needs a night because OpenAI caps our tokens per minute.",
    ),
    "invented": (
        "The OpenAI summary quoted a paragraph of our contract that does not exist. We cannot show that.",
        "Twice this week OpenAI made up an order number, our staff no longer trust the draft replies.",
        "OpenAI answers with great confidence and gets our dosage table wrong one time in twenty.",
        "Our testers found that OpenAI cites pages which are not in the manual at all.",
    ),
    "lock-in": (
        "If we build on OpenAI prompts and fine-tunes, what does it take to leave? We were burnt once.",
        "Procurement asks for a second supplier: everything you showed us only runs on OpenAI.",
        "We would sleep better if the connector were not welded to OpenAI and we could swap the model.",
    ),
    "outage": (
        "When OpenAI was down on Tuesday our whole desk stood still for two hours, there is no fallback.",
        "Third OpenAI incident this quarter, our uptime promise to the stores is gone.",
    ),
    "secrecy": (
        "Does OpenAI train on what we send? Our designs are unreleased and we never agreed to that.",
        "Our CISO will not let source code anywhere near OpenAI until retention is zero in writing.",
        "An intern pasted a salary list into the OpenAI playground, so now it is blocked for everybody here.",
    ),
    "change": (
        "OpenAI retires the model we validated in October; we need nine months to validate another one.",
        "The same OpenAI prompt gives other results since last week and nobody announced anything.",
    ),
    "ru": (
        "Юристы против OpenAI: персональные данные нельзя выводить за пределы страны, и точка.",
        "OpenAI снова подорожал, руководство спрашивает, чем его заменить.",
    ),
    "ja": (
        "OpenAI の回答に存在しない型番が含まれており、お客様に提示できません。",
        "OpenAI に送信したデータの保存場所が不明なため、社内審査で止まっています。",
    ),
}
"""What makes clients hesitate, by theme: each text is sent once."""

DOUBT_WORDS = (
    "bill", "costs us", "budget", "charge", "regulator", "legal", "which country", "council", "429",
    "throttl", "tokens per", "not exist", "made up", "wrong", "cites", "leave", "supplier", "swap",
    "was down", "incident", "train on", "retention", "blocked", "retires", "other results", "юрист",
    "подорожал", "存在しない", "保存場所",
)  # fmt: skip
"""Words of the writers by which every doubt is found: what a searcher has to think of, or to read up."""

_NEUTRAL = (
    "Does your connector already speak the new OpenAI responses format?",
    "We switched the OpenAI key in the sandbox, please use the new one from the vault.",
    "Quick note: the OpenAI embedding run finished, {n} documents in {m} minutes.",
    "Our team is very happy with the OpenAI summaries of long tickets, keep them on.",
    "Where in the settings do I pick the OpenAI model for the French desk?",
    "The demo with OpenAI voice went down well with our board.",
    "Can we see per department how many OpenAI calls were made in week {m}?",
    "I compared OpenAI with our own classifier on {n} tickets: 91 % against 84 %.",
    "Please add our second OpenAI organisation id, it ends in {n}.",
    "Is streaming from OpenAI supported in the widget, or only whole answers?",
    "Our webinar on OpenAI and retail is on the {m}th, your people are welcome.",
    "We moved the OpenAI prompt to the template store, version {n}.",
    "Thanks, the openai-python upgrade fixed the import on our side.",
    "The OpenAI toggle shows up twice in the admin page, cosmetic only.",
    "For the record: OpenAI is enabled for {n} of our seats since Monday.",
)
_NEUTRAL_OWN = (
    "The HTTP client we use for OpenAI reuses connections now, version {n}.",
    "Which OpenAI client do you recommend for Go?",
    "I wrote a small client around the OpenAI batch endpoint, happy to share.",
)
_TEAM_CLIENT = (
    "{who}: the client asks again about OpenAI, can somebody join the call at {m}?",
    "Client question of the day: does the OpenAI add-on work without SSO?",
    "Every client on the new plan gets the OpenAI add-on from the {m}th.",
    "Reminder: ask the client for a signed addendum before OpenAI is switched on, see HF-{n}.",
    "Three client workspaces have OpenAI on, {n} calls last week.",
    "I demoed OpenAI drafts to a client in Lyon, {m} people in the room.",
    "The client list for the OpenAI beta is in the sheet, {n} rows.",
)
_TEAM_PLAIN = (
    "OpenAI changed the pricing page again, screenshot in HF-{n}.",
    "Evaluation of OpenAI against the open weights model: {m} to {n} on our set.",
    "I bumped the OpenAI SDK, tests are green.",
    "OpenAI status page says degraded, we see {n} errors.",
    "Reading the OpenAI cookbook for the retrieval part, chapter {m}.",
    "Moved the OpenAI adapter behind the port, {n} lines fewer.",
)
_BOT = ("Weekly digest: {n} OpenAI calls, {m} client workspaces active.",)
_TEAM_REPLY = (
    "Understood, I will bring this to the product team and come back with something written.",
    "Thanks for being so frank. Can we take it up on Thursday, with your colleague from legal?",
    "You are not the first to say so. There is an option to run a smaller model in your own tenant.",
    "I opened HF-{n} for this and put you on it.",
)

_PADDING = (
    "Apart from that the rollout goes as planned.",
    "I will be in the call on Thursday and can say more then, if anybody wants to hear the long version.",
    "My colleagues in Lyon and Porto see it the same way.",
    "For context: {n} people in {m} locations open the tool every morning, most of them not technical.",
    "The numbers are in the sheet I shared last week, second tab.",
    "We would like to settle this before the {m}th, because the steering group meets on that day.",
    "If it helps I can record a short video of what our staff see on the screen.",
    "Please do not take this as a complaint, the support we get from you is excellent.",
    "Our previous tool had the same topic and we never got to the bottom of it.",
    "It matters most for the night shift, when nobody from IT is around to help.",
    "I have put {n} examples into the folder, sorted by week, with the ones that stand out on top.",
    "Otherwise a pleasant week to all of you.",
    "We tried it with the small and the large setting, with and without the glossary: no difference.",
    "Two of our stores run the pilot since March, the other {m} follow after the summer.",
    "I know that this is a lot of text for a chat, so feel free to call me.",
    "The internal reference on our side is CR-{n}.",
)
_PADDING_RU = (
    "Подробности в таблице, второй лист.",
    "В четверг на созвоне расскажу подробнее, если будет время у всех участников.",
    "У нас {n} сотрудников в {m} городах, и почти все работают с этим каждый день.",
    "В остальном всё идёт по плану, спасибо за помощь.",
)
_PADDING_JA = (
    "詳細は共有済みの表の二枚目をご覧ください。",
    "木曜日の定例で改めてご説明いたします。",
    "弊社では{n}名が毎朝利用しております。",
    "その他の点については順調に進んでおります。",
)


def _filled(rng: Random, text: str, who: str = "") -> str:
    return text.format(n=100 + int(rng.random() * 900), m=10 + int(rng.random() * 18), who=who)


def _padded(rng: Random, core: str, theme: str, wanted: int) -> str:
    """`core` and so many further sentences that it is near `wanted` bytes, each at most once a round."""
    pool = {"ru": _PADDING_RU, "ja": _PADDING_JA}.get(theme, _PADDING)
    out = core
    left: list[str] = []
    while len(out.encode()) < wanted - 45:
        left = left or list(pool)
        out += " " + _filled(rng, left.pop(int(rng.random() * len(left))))
    return out


def _cores(rng: Random) -> list[tuple[str, str]]:
    """The 105 texts without padding, each with its theme (empty when it voices no doubt), shuffled."""
    cores = [(text, theme) for theme, texts in DOUBTS.items() for text in texts]
    cores += [(_filled(rng, text), "") for text in _NEUTRAL_OWN[:_OWN_CLIENT_WORD]]
    place = 0
    while len(cores) < FROM_CLIENTS:
        cores.append((_filled(rng, _NEUTRAL[place % len(_NEUTRAL)]), ""))
        place += 1
    for last in range(len(cores) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        cores[last], cores[other] = cores[other], cores[last]
    return cores


def _of_role(conversation: Conversation, role: str) -> list[Person]:
    return [p for p in conversation.members if p.role == role]


def _some_time(rng: Random) -> int:
    return moment(1, 8) + int(rng.random() * 350 * 86_400) * 1_000_000 + int(rng.random() * 1_000_000)


def _from_clients(rng: Random, rooms: list[Conversation]) -> tuple[list[Said], dict[str, list[Said]]]:
    """The 105 with the replies of teammates to every third doubt, and the doubts by theme."""
    weights = [0.3 + 1.5 * rng.random() for _ in range(FROM_CLIENTS)]
    scale, spare = OPENAI_BODY_BYTES / sum(weights), 0.0
    said: list[Said] = []
    doubts: dict[str, list[Said]] = {theme: [] for theme in DOUBTS}
    for place, ((core, theme), weight) in enumerate(zip(_cores(rng), weights, strict=True)):
        room = rooms[place % len(rooms)]
        spare += weight * scale
        body = _padded(rng, core, theme, int(spare))
        spare -= len(body.encode())
        answered = theme and place % 3 == 0
        at = _some_time(rng)
        root = Said(room, at, pick(rng, _of_role(room, "client")), Text(body), replies=2 * bool(answered))
        if theme:
            doubts[theme].append(root)
        if answered:
            root = root._replace(thread=at)
            for step in (1, 2):
                answer = Text(_filled(rng, pick(rng, _TEAM_REPLY)))
                later = at + step * 640_000_000 + 17
                said.append(Said(room, later, pick(rng, _of_role(room, "teammate")), answer, thread=at))
        said.append(root)
    return said, doubts


def _from_others(rng: Random, place: Workspace) -> list[Said]:
    """What teammates and a bot say about it: most of the messages that hold the name and "client"."""
    rooms = [place.named(name) for name in (*_TEAM_ROOMS, *_ROOMS[:3])]
    digest = place.bot("Ledger Digest")
    said = []
    for number in range(CLIENT_WORD_TOTAL - _OWN_CLIENT_WORD + _OTHERS):
        room = rooms[number % len(rooms)]
        author = pick(rng, _of_role(room, "teammate"))
        texts: tuple[str, ...] = _TEAM_CLIENT if number < CLIENT_WORD_TOTAL - _OWN_CLIENT_WORD else _TEAM_PLAIN
        if number < _BY_BOTS:
            room, author, texts = place.named("sales"), digest, _BOT
        said.append(Said(room, _some_time(rng), author, Text(_filled(rng, pick(rng, texts), author.author))))
    return said


def openai_messages(place: Workspace, seed: int) -> tuple[list[Said], dict[str, list[Said]]]:
    """Every message of the story, in no order, and the doubts by theme."""
    rng = random_for(seed, "openai")
    said, doubts = _from_clients(rng, [place.named(name) for name in _ROOMS])
    return said + _from_others(rng, place), doubts


def openai_story(said: list[Said], doubts: dict[str, list[Said]]) -> tuple[Story, ...]:
    """The story's three questions, from its messages as they were placed."""
    named = [s for s in said if "openai" in s.text.body.lower()]
    asked = sorted((s for s in named if s.author.role == "client"), key=lambda s: (s.conversation.name, s.at))
    both = sorted((s for s in named if "client" in s.text.body.lower()), key=lambda s: (s.conversation.name, s.at))
    voiced = sorted((s for some in doubts.values() for s in some), key=lambda s: (s.conversation.name, s.at))
    search = {"query": "OpenAI", "from_role": ["client"]}
    by_words = [s for s in asked if any(word in s.text.body.lower() for word in DOUBT_WORDS)]
    words = " OR ".join(f'"{word}"' if " " in word else word for word in DOUBT_WORDS)
    return (
        Story(
            "openai_from_clients",
            "How many messages about OpenAI did clients send, and where?",
            (Call("count_messages", search),),
            "105 messages in 10 conversations",
            {
                "matches": len(asked),
                "conversations": len({s.conversation.name for s in asked}),
                "body_bytes": sum(len(s.text.body.encode()) for s in asked),
            },
            [s.message_id for s in asked],
        ),
        Story(
            "openai_doubts",
            "What concerns do clients have about OpenAI?",
            (
                Call("count_messages", search),
                Call("search_messages", {**search, "limit": 20}),
                Call(
                    "unseen_messages",
                    {**search, "query": f"OpenAI ({words})", "limit": 40, "text_limit": 160},
                ),
            ),
            "cost, where data is stored, rate limits, invented answers, lock-in, outages, training on their "
            "data and secrecy, models that change or retire",
            {
                "matches": len(asked),
                "doubts": len(voiced),
                "found_by_words": len(by_words),
                **{f"theme_{theme}": len(some) for theme, some in doubts.items()},
            },
            [s.message_id for s in voiced],
        ),
        Story(
            "openai_and_client",
            "Why is the word client no way to find what clients say?",
            (Call("count_messages", {"query": "OpenAI client"}),),
            "39 messages hold both words, nearly all by teammates: clients do not write client",
            {"matches": len(both), "by_clients": sum(s.author.role == "client" for s in both)},
            [s.message_id for s in both],
        ),
    )
