"""The forms of secrets, as their issuers publish them, and the quick looks that pass by what can hold none.

Decides what a token and a key look like; card numbers have a module of their own. A form has literal anchors, one of
which stands in every text it matches; every token has a long run of characters that words seldom have; an anchor that
ends in `-` or `_` is followed by sixteen of `[A-Za-z0-9_-]`. So a few looks pass by most texts. Must never know what
becomes of a match.

Sources: the issuers' own pages on the formats of their tokens; RFC 7468 (PEM), RFC 7519 (JWT). No kept set of patterns
is loaded: the best known takes 0.3 ms for a message, a hundred times what a refresh can spend, finds lines rather than
places in them, and knows no card numbers. It is what ours are held against in the tests.
"""

import base64
import json
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import AnyStr

__all__ = ["FORMS", "Form", "may_hold_token", "nuls_before", "places_of", "runs_of", "token_places"]

Check = Callable[[re.Match[str]], bool]


@dataclass(frozen=True, slots=True)
class Form:
    """One form. A group called `secret` is what is replaced, else the whole match; `check` judges what no pattern can.

    `look` is searched for in their place where the anchors stand in every text.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Check | None = None
    look: re.Pattern[str] | None = None

    def may_match(self, text: str) -> bool:
        """False when the pattern cannot match."""
        if self.look is not None:
            return self.look.search(text) is not None
        return any(anchor in text for anchor in self.anchors)


_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"
"""Where a word begins, in the escapes of a URL too: in the base64 of a picture any short prefix stands somewhere."""
_END = r"(?!_*[A-Za-z0-9-])"
"""Where one ends; the underscores of Slack's italics are no part of it."""

_AWS = ("AKIA", "ASIA", "ABIA", "ACCA", "A3T")
_AWS_KEY = re.compile(rf"{_START}(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[0-9A-Z]{{16}}(?![A-Za-z0-9])")
_FORTY = r"(?<![A-Za-z0-9/+-])(?<![A-Za-z0-9/+-]_)(?P<secret>[A-Za-z0-9/+]{40})(?!_*[A-Za-z0-9/+=-])"


def _is_no_hash(match: re.Match[str]) -> bool:
    """A secret access key is forty characters of base64, a commit id forty of fewer kinds."""
    secret = match["secret"]
    return any(c.islower() for c in secret) and any(c.isupper() for c in secret) and any(c.isdigit() for c in secret)


def _is_beside_a_key(match: re.Match[str]) -> bool:
    """What has no form of its own is known by the access key id in the same text."""
    return _is_no_hash(match) and _AWS_KEY.search(match.string) is not None


_PEM_EDGE = re.compile(r"-{4,5} ?(?:BEGIN|END)[A-Z0-9 ]*-{4,5}")


def _has_a_body(match: re.Match[str]) -> bool:
    """The headings alone are what people write about keys."""
    return re.search(r"[A-Za-z0-9+/=]{20}", _PEM_EDGE.sub("", match[0])) is not None


def _is_jose(match: re.Match[str]) -> bool:
    """The first part is a header: JSON that names an algorithm (RFC 7515, RFC 7516)."""
    head = match[0].partition(".")[0].rstrip("=")
    try:
        value = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "alg" in value


_STAND_INS = frozenset({"password", "passwd", "pass", "pwd", "pw", "secret", "token", "yourpassword", "mypassword"})


def _is_no_stand_in(match: re.Match[str]) -> bool:
    """What documentation writes where a password would be."""
    secret = match["secret"]
    return secret[0] not in "${%" and secret.strip("*xX.") != "" and secret.lower() not in _STAND_INS


def _form(
    kind: str,
    anchors: str | tuple[str, ...],
    pattern: str,
    check: Check | None = None,
    look: re.Pattern[str] | None = None,
) -> Form:
    return Form(kind, (anchors,) if isinstance(anchors, str) else anchors, re.compile(pattern), check, look)


_LOGIN = re.compile(r"//[^\s:/@]*:[^\s:/@]{3,}@")
"""A password in a URL may be short; its edges are there."""

_PRIVATE = r"(?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?"
_BREAK = r"(?:[\s>]|\\[rn])*"
"""Lines end as they do, or as a string in JSON says it, and begin as a quotation does."""
_SLASH = r"(?:\\?/|%2[Ff])"
_DASH = r"(?:-|%2[Dd])"
"""As they stand in JSON and in URLs, too."""

FORMS: tuple[Form, ...] = (
    _form(
        "private key",
        "PRIVATE KEY",
        # Whole, or its first lines where the rest is missing; never over the beginning of another one.
        rf"-{{4,5}} ?BEGIN {_PRIVATE} ?-{{4,5}}"
        rf"(?:(?:(?!-{{4,5}} ?BEGIN )[\s\S]){{0,20000}}?-{{4,5}} ?END {_PRIVATE} ?-{{4,5}}"
        rf"|(?:{_BREAK}[A-Za-z-]+: [^\r\n]*)*(?:{_BREAK}[A-Za-z0-9+/=]{{20,}})+)",
        _has_a_body,
    ),
    _form(
        "private key", "PuTTY-User-Key-File", r"PuTTY-User-Key-File-[0-9]: [\s\S]{0,20000}?Private-MAC: [0-9a-f]{40,}"
    ),
    _form("private key", "AGE-SECRET-KEY-", rf"AGE-SECRET-KEY-1[0-9A-Z]{{58}}{_END}"),
    _form(
        "slack webhook",
        "hooks.slack",
        rf"hooks\.slack(?:-gov)?\.com{_SLASH}[a-z]+{_SLASH}(?P<secret>(?:[A-Za-z0-9_]|{_SLASH}){{20,}})",
    ),
    _form(
        "slack token",
        "xox",
        rf"(?:xoxe\.)?xox[a-z]{_DASH}[0-9]+{_DASH}(?:[A-Za-z0-9]|{_DASH}){{14,}}|xoxd-[A-Za-z0-9%+/=_-]{{40,}}",
    ),
    _form("slack token", "xwfp-", r"xwfp-(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{20,}"),
    _form("slack token", "xapp-", r"xapp-[0-9]+-[A-Z0-9]+-[0-9]+-[A-Za-z0-9]{10,}"),
    _form(
        "aws session token",
        ("IQoJb3JpZ2lu", "FwoGZXIvYXdz", "FQoGZXIvYXdz"),
        r"(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz)[A-Za-z0-9/+=%]{50,}",
    ),
    _form("grafana token", "glc_eyJ", rf"{_START}glc_eyJ[A-Za-z0-9+/=]{{37,}}"),
    _form("jwt", "eyJ", rf"{_START}eyJ[A-Za-z0-9_-]{{17,}}=*(?:\.[A-Za-z0-9_-]*=*){{2,4}}", _is_jose),
    _form("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _form("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{50,255}"),
    _form(
        "gitlab token",
        ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glimt-", "glptt-", "glagent-", "gloas-", "glffct-"),
        r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct)-[A-Za-z0-9_-]{20,1024}(?:\.[a-z0-9]{2}\.[a-z0-9]{7,9})?",
    ),
    _form("gitlab token", "GR1348941", rf"{_START}GR1348941[A-Za-z0-9_-]{{20,50}}"),
    _form("stripe key", ("k_live_", "k_test_", "k_org_"), rf"{_START}[sr]k_(?:live|test|org)_[A-Za-z0-9_]{{20,247}}"),
    _form("stripe key", "whsec", rf"{_START}whsec_[A-Za-z0-9+/=]{{32,}}"),
    _form("google key", "AIza", rf"{_START}AIza[A-Za-z0-9_-]{{35}}{_END}"),
    _form("google key", "GOCSPX-", rf"{_START}GOCSPX-[A-Za-z0-9_-]{{28}}"),
    _form("google key", "ya29.", rf"{_START}ya29\.[A-Za-z0-9_-]{{20,}}"),
    _form("google key", "1//0", rf"{_START}1//0[A-Za-z0-9_-]{{40,}}"),
    _form("anthropic key", "sk-ant-", r"sk-ant-[a-z0-9]+-[A-Za-z0-9_-]{32,}"),
    _form("openai key", "T3BlbkFJ", rf"{_START}sk-[A-Za-z0-9_-]*T3BlbkFJ[A-Za-z0-9_-]{{20,}}"),
    _form("openai key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}"),
    _form("openai key", "sk-", rf"{_START}sk-[A-Za-z0-9]{{48}}{_END}"),
    _form("npm token", "npm_", rf"{_START}npm_[A-Za-z0-9]{{36}}{_END}"),
    _form("npm token", "_authToken", r"_authToken\s{0,3}=\s{0,3}[\"']?(?P<secret>[A-Za-z0-9_-]{20,}={0,2})"),
    _form("pypi token", "pypi-", r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    _form("rubygems token", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _form("docker token", ("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[A-Za-z0-9_-]{27,}"),
    _form("hugging face token", "hf_", rf"{_START}hf_[A-Za-z]{{34}}{_END}"),
    _form("hayfork key", "hf_", r"hf_[0-9a-f]{16}_[A-Za-z0-9_-]{43}"),
    _form(
        "azure key",
        ("AccountKey=", "AccessKey="),
        r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{40,88}={0,2})",
    ),
    _form("azure key", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/_-]{43,70}(?:%3[Dd]|=))"),
    _form("sendgrid key", "SG.", rf"{_START}SG\.[A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{43}}"),
    _form("mailchimp key", "-us", rf"{_START}[0-9a-z]{{32}}-us[0-9]{{1,2}}{_END}"),
    _form("telegram token", ":AA", rf"{_START}[0-9]{{8,10}}:AA[A-Za-z0-9_-]{{33}}{_END}"),
    _form("discord token", "/api/webhooks/", r"/api/webhooks/[0-9]{17,20}/(?P<secret>[A-Za-z0-9_-]{60,})"),
    _form(
        "discord token",
        ".",
        rf"{_START}[MNO][A-Za-z0-9_-]{{23,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,38}}{_END}",
        look=re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}"),
    ),
    _form("shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}"),
    _form("square token", ("sq0csp-", "sq0atp-"), r"sq0(?:csp|atp)-[A-Za-z0-9_-]{22,43}"),
    _form("digitalocean token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[por]_v1_[0-9a-f]{64}"),
    _form("databricks token", "dapi", rf"{_START}dapi[0-9a-f]{{32}}(?:-[0-9])?{_END}"),
    _form("vault token", ("hvs.", "hvb."), rf"{_START}hv[sb]\.[A-Za-z0-9_-]{{24,}}"),
    _form("atlassian token", "ATATT3", rf"{_START}ATATT3[A-Za-z0-9_=-]{{100,}}"),
    _form("grafana token", "glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}"),
    _form("linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _form("notion token", "ntn_", rf"{_START}ntn_[A-Za-z0-9]{{40,}}"),
    _form("postman key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _form("new relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _form("aws secret", _AWS, _FORTY, _is_beside_a_key),
    _form(
        "aws secret",
        ("ecret", "ECRET", "aws", "AWS", "Aws"),
        r"(?i:aws.{0,20}?(?:key|pwd|pw|password|pass|token)|secret[ _-]?(?:access[ _-]?)?key)[^\r\n]{0,20}?" + _FORTY,
        _is_no_hash,
    ),
    Form("aws key", _AWS, _AWS_KEY),
    _form(
        "url password",
        "://",
        r"://[^\s:/?#@\[\]\"'<>]*:(?P<secret>[^\s:/?#@\[\]\"'<>]{3,})@(?=[A-Za-z0-9\[])",
        _is_no_stand_in,
        look=_LOGIN,
    ),
)
"""In this order: what has no form of its own comes late, and before the neighbour it is known by is gone."""

_RUN = b"a" * 20
"""Every token has so many characters in a row of `[A-Za-z0-9_+/=%-]`; few words and no time stamps do."""
_JOINED = tuple(re.compile(rf"{joint}(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{{16}}") for joint in "_-")
"""A prefix and what it announces. No token is of small letters alone, as slugs are."""


def _looks() -> tuple[tuple[str, ...], tuple[re.Pattern[str], ...]]:
    """Words and patterns, one of which is found wherever an anchor stands: those of a capital share one search."""
    loose = {a for form in FORMS if form.look is None for a in form.anchors if a[-1] not in "-_"}
    fewest = sorted(a for a in loose if not any(b in a for b in loose - {a}))
    by_capital = {c: [a[1:] for a in fewest if a[0] == c] for c in string.ascii_uppercase}
    shared = [f"{c}(?:{'|'.join(map(re.escape, rest))})" for c, rest in by_capital.items() if rest]
    own = [form.look for form in FORMS if form.look not in {None, _LOGIN}]
    return tuple(a for a in fewest if a[0] not in by_capital), (*_JOINED, *map(re.compile, shared), *own)


_WORDS, _LOOKS = _looks()


def runs_of(alphabet: bytes) -> bytes:
    """A table for `bytes.translate` that writes `a` for each byte of `alphabet`, else a blank."""
    return bytes(ord("a") if byte in alphabet else ord(" ") for byte in range(256))


_LETTERS = string.ascii_letters.encode() + string.digits.encode() + b"_+=%-"
_IN_TEXT = runs_of(_LETTERS + b"/")
_IN_LINK = runs_of(_LETTERS)


def token_places(text: str, raw: bytes, *, link: bool = False) -> Iterator[int]:
    """Where a token may begin, in NULs before it; `raw` is the text in bytes, and no token holds a NUL.

    So many texts are looked at as one, and most of them never again.
    """
    yield from nuls_before(raw, places_of(_RUN, raw.translate(_IN_LINK if link else _IN_TEXT)))
    if "@" in text:
        yield from nuls_before(text, (match.start() for match in _LOGIN.finditer(text)))


def places_of(run: bytes, looked_at: bytes) -> Iterator[int]:
    """Where runs at least as long as `run` begin, in what a table of `runs_of` has written."""
    place = looked_at.find(run)
    while place >= 0:
        yield place
        end = looked_at.find(b" ", place)
        place = looked_at.find(run, end) if end >= 0 else end


def nuls_before(text: AnyStr, places: Iterable[int]) -> Iterator[int]:
    """For each place the number of NULs in `text` before it."""
    nul = "\0" if isinstance(text, str) else b"\0"
    count = last = 0
    for place in places:
        count += text.count(nul, last, place)
        last = place
        yield count


def may_hold_token(text: str, *, link: bool = False) -> bool:
    """False when no form but a card number can be in `text`. The slashes of a `link` divide what stands in it."""
    if _RUN in text.encode("utf-8", "surrogatepass").translate(_IN_LINK if link else _IN_TEXT):
        for anchor in _WORDS:
            if anchor in text:
                return True
        for look in _LOOKS:
            if look.search(text) is not None:
                return True
    return _LOGIN.search(text) is not None
