"""What the invented people talk with: sentence patterns by theme and language, and the words that fill them.

A pattern names its slots in braces. Lists are in falling order of frequency. Must never hold what a planted
story is found by ("OpenAI", "deployment" and the words of `stories`): those are planted, and counted.
"""

__all__ = ["ACKS", "EMOJI", "PATTERNS", "REPLIES", "SLOTS", "SYLLABLES"]

SYLLABLES = (
    "ra", "ve", "lo", "ki", "mun", "tor", "bel", "sha", "dri", "quo", "nex", "zil", "pam", "gru", "fen",
    "hol", "yst", "car", "dov", "ess", "imb", "jun", "kel", "lyn", "mar", "nub", "orb", "pli", "ros", "ulm",
)  # fmt: skip

SLOTS: dict[str, tuple[str, ...]] = {
    "thing": (
        "build", "service", "test", "query", "report", "page", "import", "cache", "job", "index", "schema",
        "token", "migration", "endpoint", "webhook", "dashboard", "pipeline", "config", "export", "queue",
        "session", "table", "container", "replica", "cluster", "certificate", "invoice", "login", "form",
        "parser", "worker", "bucket", "snapshot", "library", "scheduler", "gateway", "proxy", "database",
        "backup", "template", "permission", "timeout", "retry", "batch", "upload", "filter", "column",
        "header", "payload", "template engine", "rollback", "feature flag", "load balancer", "rate limiter",
        "search box", "audit log", "sandbox", "staging box", "connector", "billing run", "price list",
        "contract", "purchase order", "seat count", "trial", "renewal", "onboarding call", "training video",
        "release note", "style guide", "icon set", "modal", "sidebar", "tooltip", "checksum", "lockfile",
        "symlink", "daemon", "socket", "mutex", "heap dump", "core file", "stack trace", "flame graph",
        "histogram", "percentile", "watermark", "tombstone compaction", "partition", "offset",
        "consumer group", "vacuum", "deadlock", "foreign key", "materialised view", "bloom filter", "trie",
        "sketch",
    ),
    "quality": (
        "slow", "broken", "flaky", "fine", "new", "old", "green", "red", "empty", "wrong", "missing",
        "stuck", "huge", "duplicated", "stale", "noisy", "expired", "unreadable", "inconsistent",
        "half done", "back to normal", "surprisingly quick", "locked", "read-only", "off by one",
        "undocumented", "harmless", "fragile", "idle", "saturated", "truncated", "garbled", "orphaned",
        "untested", "redundant", "brittle", "opaque", "lopsided",
    ),
    "did": (
        "fixed", "checked", "restarted", "merged", "reverted", "pushed", "tested", "rewrote", "removed",
        "renamed", "documented", "measured", "moved", "disabled", "enabled", "patched", "rebased",
        "reproduced", "reported", "escalated", "profiled", "split", "archived", "rotated", "regenerated",
        "quarantined", "backported", "vendored",
    ),
    "when": (
        "today", "yesterday", "this morning", "last night", "on Monday", "next week", "tomorrow",
        "on Friday", "after lunch", "before the freeze", "since the upgrade", "last month",
        "over the weekend", "twice this week", "during the demo", "right after midnight", "a quarter ago",
        "since Tuesday", "every other run",
    ),
    "team": (
        "platform", "support", "billing", "data", "security", "mobile", "design", "sales", "legal", "infra",
        "payments", "growth", "finance", "research", "procurement", "facilities",
    ),
    "place": (
        "staging", "production", "eu-west", "the sandbox", "us-east", "my laptop", "the canary", "CI",
        "ap-northeast", "the mirror", "the test tenant", "the bastion", "the old datacentre",
        "the partner's network",
    ),
    "plan": (
        "write it up", "open a ticket", "add a test", "ask legal", "roll it back", "bump the limit",
        "turn it off", "page whoever is on call", "wait for the next window", "try with a smaller batch",
        "split the change in two", "compare the two logs", "warm the cache first", "pin the version",
        "talk to the vendor", "drop the old column", "rerun it by hand", "keep both for a sprint",
        "measure before we guess", "put it behind a flag",
    ),
    "company": (
        "Northwind", "Halvorsen", "Kestrel Bank", "Ottoline", "Marisol", "Pinegrove", "Tanuki", "Zvezda",
        "Qasr",
    ),
    "food": (
        "ramen", "pizza", "salad", "curry", "tacos", "dumplings", "soup", "falafel", "pho", "bacalhau",
        "pierogi", "borscht", "khachapuri", "onigiri", "shakshuka", "ceviche",
    ),
    "вещь": (
        "сборка", "база", "очередь", "отчёт", "выгрузка", "миграция", "страница", "кнопка", "документация",
        "сервис", "таблица", "репликация", "авторизация", "нагрузка", "подписка", "ошибка", "настройка",
        "проверка",
    ),
    "когда": (
        "сегодня", "вчера", "утром", "ночью", "на прошлой неделе", "в пятницу", "после обеда", "ещё в мае",
    ),
    "сделал": (
        "поправил", "проверил", "перезапустил", "откатил", "удалил", "переписал", "замерил", "отключил",
    ),
    "もの": (
        "ビルド", "サーバー", "データベース", "請求書", "画面", "テスト", "ログ", "設定", "検索", "通知",
        "契約書", "資料", "バックアップ", "証明書", "翻訳", "集計", "在庫連携",
    ),
    "いつ": ("今日", "昨日", "今朝", "来週", "金曜日", "先月", "夕方", "明日の午前中"),
    "东西": ("服务器", "数据库", "报表", "接口", "页面", "缓存", "日志", "权限", "证书", "队列"),
    "شيء": ("الخادم", "التقرير", "الصفحة", "الفاتورة", "النسخة", "الاتصال", "الجدول", "السجل"),
}  # fmt: skip

_COMMON = (
    "The {thing} is {quality} {when}.",
    "I {did} the {thing}, can someone look?",
    "Has anyone seen the {thing} get {quality} {when}?",
    "Looks like the {thing} in {place} is {quality} again.",
    "We should {plan} before the {team} team notices.",
    "My guess: the {thing} was {quality} {when} and nobody {did} it.",
    "Not urgent, but the {thing} for {name} is still {quality}.",
    "I would rather {plan} than touch the {thing} now.",
    "Who owns {name} these days?",
    "Moved the {team} sync, agenda is the {thing} and the {thing}.",
    "If nobody objects I will {plan} {when}.",
    "Numbers for {name}: {number} rows, {percent} % more than {when}.",
    "See HF-{ticket}, the {thing} there is {quality} too.",
)

PATTERNS: dict[str, tuple[str, ...]] = {
    "backend": (
        *_COMMON,
        "{name} on {host} returns {code} for every {number}th request.",
        "After {version} the {thing} takes {millis} ms instead of {millis} ms.",
        "Rolled {name} to {version} in {place}, the {thing} stays {quality}.",
        "{host} ran out of memory at {number} connections, I {did} the {thing}.",
        "p99 of {name} went from {millis} to {millis} ms when the {thing} was {did}.",
        "Commit {hex} {did} the {thing}; please do not merge before the {thing} is green.",
        "The {thing} retries {small} times and then fails with {code} (trace {hex}).",
        "Can we raise the {thing} limit in {place} to {number}?",
        "ERROR {code} in {name}.{name}: {thing} {hex} not found",
        "I see `{name}_{name}` & `{name}` both writing to the {thing}, is that intended?",
        "if latency < {millis} ms && errors < {small} then the {thing} is fine, else {plan}",
    ),
    "frontend": (
        *_COMMON,
        "The {thing} jumps by {small} pixels when the {thing} opens.",
        "Contrast of the {thing} is too low in dark mode, ratio {small}.{small}.",
        "Bundle grew by {number} kB since {version}, mostly {name}.",
        "Screens for the {thing} are ready, please comment {when}.",
        "On small phones the {thing} covers the {thing}.",
        "<{name}> renders the {thing} twice, React warns about the key {hex}.",
    ),
    "data": (
        *_COMMON,
        "The {thing} for {company} has {number} rows, {small} % of them {quality}.",
        "Recall at 10 went up by {small} points after we {did} the {thing}.",
        "The nightly {thing} of {name} finished in {number} s.",
        "Column {name} is {quality} {when}, the join drops {number} rows.",
        "Reading: a paper on {name} estimators, the part about the {thing} is good.",
    ),
    "security": (
        *_COMMON,
        "The scanner flags {name} {version} (severity {small}), the fix is {version}.",
        "Rotated the {thing} on {host}, old one ends {when}.",
        "Access review: {number} accounts of the {team} team are {quality}.",
        "Please do not paste a {thing} in here, use the vault.",
    ),
    "support": (
        *_COMMON,
        "Since {when} our users see an {quality} {thing} when they open the {thing}.",
        "Could you tell us when the {thing} will be {did}?",
        "We get {code} when we call the {thing} with {number} records.",
        "{company} asks whether the {thing} can be {did} {when}.",
        "Thank you, the {thing} works now, the {thing} is still {quality}.",
        "Is there a way to see the {thing} per {team} department?",
        "Our integration sends {number} events an hour and {small} of them are {quality}.",
        "I attach the log of {host}, the interesting part is at line {number}.",
        "Ticket HF-{ticket} is open for {small} days, any news?",
        "The client library {version} does not know the {thing}, we use {version}.",
    ),
    "billing": (
        *_COMMON,
        "{company} wants {number} more seats from {when}.",
        "Invoice INV-{ticket} shows {number} EUR, the {thing} says {number}.",
        "The renewal of {company} is {quality}, I will {plan}.",
        "Call with {company} went well, they like the {thing}.",
        "Every client on the old price list gets the {thing} {when}.",
        "Forecast for the quarter: {number} k, {percent} % above plan.",
    ),
    "office": (
        *_COMMON,
        "Lunch {when}? I fancy {food}.",
        "There is {food} left in the kitchen.",
        "The train is late, I join in {small} minutes.",
        "Out {when}, {plan} without me.",
        "The printer near {team} is {quality} again.",
        "Who has the key to room {small}?",
        "Photos from the offsite are in the album {name}.",
        "Welcome to the {team} team!",
    ),
    "ru": (
        "{вещь} опять упала {когда}, я {сделал} что мог.",
        "Коллеги, {вещь} не работает {когда}, кто посмотрит?",
        "Я {сделал} конфиг на {host}, теперь {вещь} живая.",
        "По тикету HF-{ticket}: {вещь} и {вещь} мешают друг другу.",
        "Кажется, {вещь} стала медленнее, {millis} мс вместо {millis}.",
        "Давайте {когда} созвонимся и обсудим, что делать дальше.",
        "Ёлки, ещё и {вещь} сломалась, код {code}.",
        "Спасибо, стало лучше, но {вещь} всё ещё под вопросом.",
        "Версия {version} уже стоит, {вещь} пока без изменений.",
    ),
    "ja": (
        "{いつ}から{もの}が動きません。確認をお願いします。",
        "{もの}の件、{いつ}までに対応します。",
        "{host} の{もの}で {code} が出ています。",
        "{もの}と{もの}を更新しました(バージョン {version})。",
        "HF-{ticket} について、{いつ}打ち合わせできますか?",
        "{もの}は{percent}%改善しました。",
        "お疲れ様です。{もの}のレビューをお願いします。",
        "全角の数字「12345」も{もの}で検索できるようにしたいです。",
    ),
    "zh": (
        "{东西}今天又出问题了,错误码 {code}。",
        "请帮忙看一下{东西},谢谢。",
        "{东西}已经升级到 {version},{东西}还没有。",
        "HF-{ticket} 的{东西}什么时候可以修好?",
        "{host} 上的{东西}比昨天快了{percent}%。",
    ),
    "ar": (
        "{شيء} لا يعمل منذ الصباح، رمز الخطأ {code}.",
        "هل يمكن مراجعة {شيء} قبل الاجتماع؟",
        "تم تحديث {شيء} إلى {version} شكرا لكم.",
        "نحتاج إلى {شيء} و{شيء} هذا الأسبوع، التذكرة HF-{ticket}.",
    ),
}  # fmt: skip

REPLIES = (
    "Same here, the {thing} is {quality} for us too.",
    "I can {plan} {when}.",
    "Did you try with {version}?",
    "That was me, I {did} the {thing} {when}.",
    "Which {thing}? The one in {place}?",
    "It is {name}, see HF-{ticket}.",
    "No, {code} means the {thing} is {quality}.",
    "Yes, and {host} shows it as well.",
    "Let us {plan} and see.",
    "Works for me on {version}, maybe the {thing} on your side is {quality}?",
)

ACKS = (
    "thanks!", "ok", "+1", "done", "thank you", "yes", "no worries", "on it", "sounds good", "looking",
    "same", "👍", "great, thanks", "will do", "lol", "nice", ":tada:", "agreed", "me too", "🙏", "not yet",
    "спасибо", "ага", "ок", "了解です", "ありがとうございます", "👩‍💻", "好的", "شكرا", "✅", "brb",
    "makes sense", "sgtm", "👨‍👩‍👧‍👦", "see above",
)  # fmt: skip

EMOJI = (
    "🙂", "🎉", ":sweat_smile:", "🚀", "👍🏽", "👩‍💻", "🔥", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇵🇹", "❤️", "🤷🏻‍♀️",
    "cafe\u0301", "1️⃣",
)  # fmt: skip
