"""The smaller planted stories: each has a question, calls that answer it, and messages that hold the answer.

Decides their words and places; `openai` holds the largest story. Must never know how other talk
is made.
"""

from random import Random

from engine.synth.chance import pick, random_for
from engine.synth.people import Conversation, Person, Workspace
from engine.synth.planted import Call, Said, Story, moment
from engine.synth.talk import Text

__all__ = ["small_stories"]

_OUTAGE = (
    "Платёжный шлюз лежит с 09:40, все оплаты с карт отклоняются. Кто на дежурстве?",
    "Я на дежурстве, смотрю. В мониторинге красным только шлюз, остальное зелёное.",
    "Банк говорит, что у них всё в порядке.",
    "У нас ни одна оплата не прошла за двадцать минут, звонят из магазинов.",
    "В логах рукопожатие обрывается сразу, до запроса дело не доходит.",
    "Может, опять сеть у провайдера?",
    "Нет, с того же узла остальные адреса открываются.",
    "Нашёл: истёк промежуточный сертификат, его забыли в напоминаниях, потому что он был на старом узле.",
    "Выпускаю новый, десять минут.",
    "Поставил на оба узла, перечитал настройки.",
    "Оплаты пошли, первая в 10:31.",
    "Подтверждаю, магазины довольны.",
    "Итого 51 минута простоя. Завёл задачу: проверять сроки всех сертификатов каждую ночь, а не по списку.",
    "Спасибо всем, разбор в понедельник.",
)

_DECISION = (
    "料金プランの件ですが、席数課金と従量課金のどちらにするか今週中に決めたいです。",
    "中小のお客様は席数のほうが予算を立てやすいとのことです。",
    "一方で繁忙期だけ使う店舗には従量のほうが公平だと思います。",
    "両方を残すと請求の処理が複雑になりますね。",
    "試算しました。席数課金に上限付きの従量を加えると八割のお客様が安くなります。",
    "では、席数課金を基本とし、超過分のみ従量とする案で決定します。四月一日から適用です。",
    "承知しました。見積書のひな形を直しておきます。",
)

_KNOWN = (
    "For the archive: the theodolite we lent to the Halvorsen survey crew is back, it is in the grey cabinet "
    "behind the marmalade jars, serial QX-7741-Ω. Battery is swollen, do not charge it."
)

_TROUBLE = "The reconciliation job hangs at 93 percent every night since the move, any idea what it waits for?"
_TROUBLE_GUESSES = (
    "Maybe the lock table? It was full last year.",
    "Could be the slow disk on that box, I would look at iostat first.",
)
_TROUBLE_END = (
    "To close this: an old antivirus held the spool folder open. I excluded the path and we have had nine "
    "quiet mornings in a row."
)

_NOTICE = "Heads-up: the badge readers on floors 2 and 3 are replaced on 14 October, please bring a photo ID."
_NOTICE_NEAR = (
    "Heads up, the badge readers on floors 2 and 3 are replaced on 14 October. Please bring photo ID!",
    "Heads-up: the badge readers on floors 2 and 3 are replaced on 15 October, please bring a photo ID.",
    "Heads-up, again: badge readers on floors 2 and 3 are replaced on 14 October, please bring a photo ID.",
)
_NOTICE_COPIES = 7

_WREN_DAYS = range(2, 15)
_WREN_PER_DAY = 3


def _of(conversation: Conversation, role: str, count: int, rng: Random) -> list[Person]:
    """`count` different members of that role."""
    people = [p for p in conversation.members if p.role == role]
    return [people.pop(int(rng.random() * len(people))) for _ in range(count)]


def _thread(room: Conversation, people: list[Person], lines: tuple[str, ...], at: int, step: int) -> list[Said]:
    """`lines` as one thread, `step` seconds apart, spoken in turn."""
    out = []
    for place, line in enumerate(lines):
        when = at + place * (step * 1_000_000 + 137)
        out.append(Said(room, when, people[place % len(people)], Text(line), thread=at))
    out[0] = out[0]._replace(replies=len(lines) - 1)
    return out


def _ids(said: list[Said]) -> list[str]:
    return [s.message_id for s in said]


def _outage(place: Workspace, rng: Random) -> tuple[list[Said], Story]:
    room = place.named("команда-ру")
    said = _thread(room, _of(room, "teammate", 3, rng), _OUTAGE, moment(3, 18, 7, 2, 411), 210)
    return said, Story(
        "outage_in_russian",
        "Why could nobody pay by card in March, and what was done about it?",
        (
            Call("search_messages", {"query": "шлюз оплат"}),
            Call("open_thread", {"message": said[0].message_id, "later": 14}),
        ),
        "an intermediate certificate on an old host had expired; it was replaced; cards failed for "
        "51 minutes, and expiry of all certificates is now checked nightly",
        {"messages": len(said), "matches": 1},
        _ids(said),
    )


def _decision(place: Workspace, rng: Random) -> tuple[list[Said], Story]:
    room = place.named("日本チーム")
    people = _of(room, "teammate", 4, rng)
    start = moment(2, 20, 1, 15, 90_211)
    said = [Said(room, start + n * 97_000_411, people[n % len(people)], Text(line)) for n, line in enumerate(_DECISION)]
    return said, Story(
        "decision_in_japanese",
        "How will the Japanese customers be charged from April, and who decided it?",
        (
            Call("search_messages", {"query": "課金 決定"}),
            Call("search_messages", {"query": "従量", "context": 3}),
        ),
        f"by seat, with usage charged only above it, from 1 April; {said[5].author.author} announced it",
        {"messages": len(said), "matches": 1},
        _ids(said),
    )


def _known_item(place: Workspace, rng: Random) -> tuple[list[Said], Story]:
    room = place.named("random")
    said = [Said(room, moment(9, 3, 16, 44, 250_007), _of(room, "teammate", 1, rng)[0], Text(_KNOWN))]
    return said, Story(
        "known_item",
        "Where is the surveying instrument that Halvorsen borrowed?",
        (Call("search_messages", {"query": "theodolite"}),),
        "in the grey cabinet behind the marmalade jars",
        {"matches": 1},
        _ids(said),
    )


def _how_it_ended(place: Workspace, rng: Random) -> tuple[list[Said], Story]:
    room = place.named("infrastructure")
    asker, *guessers = _of(room, "teammate", 3, rng)
    at = moment(5, 6, 8, 12, 31)
    said = [Said(room, at, asker, Text(_TROUBLE))]
    said += [
        Said(room, at + (n + 1) * 180_000_003, who, Text(line))
        for n, (who, line) in enumerate(zip(guessers, _TROUBLE_GUESSES, strict=True))
    ]
    said.append(Said(room, moment(5, 15, 6, 30, 77), asker, Text(_TROUBLE_END)))
    return said, Story(
        "how_it_ended",
        "What made the nightly reconciliation hang, in the end?",
        (
            Call("search_messages", {"query": "reconciliation hangs"}),
            Call("open_thread", {"message": said[0].message_id, "view": "author", "later": 100}),
        ),
        "an old antivirus held the spool folder open; the path was excluded",
        {"messages": 2, "matches": 1},
        [said[0].message_id, said[-1].message_id],
    )


def _two_weeks(place: Workspace, rng: Random) -> tuple[list[Said], Story]:
    room, wren = place.named("data-pipelines"), place.bot("Migration Wren")
    said = []
    for day in _WREN_DAYS:
        for turn in range(_WREN_PER_DAY):
            table, rows = 10 + int(rng.random() * 90), 1_000 + int(rng.random() * 90_000)
            text = f"wrenlog: table t{table} copied, {rows} rows verified"
            said.append(Said(room, moment(6, day, 4 + 8 * turn, 5, turn), wren, Text(text), subtype="bot_message"))
    return said, Story(
        "bot_of_two_weeks",
        "Who copied the tables, and is the copying still going on?",
        (Call("count_messages", {"query": "wrenlog"}),),
        "Migration Wren, a bot that wrote only from 2025-06-02 to 2025-06-14",
        {"matches": len(said), "authors": 1},
        _ids(said),
    )


def _copies(place: Workspace, rng: Random) -> tuple[list[Said], Story]:
    rooms = [place.named(n) for n in ("general", "random", "engineering", "sales")]
    texts = (_NOTICE,) * _NOTICE_COPIES + _NOTICE_NEAR
    people = _of(rooms[0], "teammate", len(texts), rng)
    said = [
        Said(pick(rng, rooms), moment(10, 7, 9, 3 * n, 1_000 + n), who, Text(text))
        for n, (who, text) in enumerate(zip(people, texts, strict=True))
    ]
    return said, Story(
        "copies",
        "When are the badge readers replaced?",
        (Call("search_messages", {"query": '"badge readers"'}),),
        "on 14 October; seven people posted the same text and three nearly the same, one with another date",
        {"matches": len(said), "equal": _NOTICE_COPIES, "hits_when_merged": 1 + len(_NOTICE_NEAR)},
        _ids(said),
    )


def small_stories(place: Workspace, seed: int) -> tuple[list[Said], tuple[Story, ...]]:
    """All of them: their messages in no order, and the stories."""
    makers = (_outage, _decision, _known_item, _how_it_ended, _two_weeks, _copies)
    made = [make(place, random_for(seed, "story", make.__name__)) for make in makers]
    return [s for said, _ in made for s in said], tuple(story for _, story in made)
