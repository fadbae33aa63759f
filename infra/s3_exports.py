"""Exports in S3: files, and their records beside them.

Decides that a record is a small JSON object in the same bucket: it is written by one process and read by its
id alone, S3 reads it back as it was written, and one lifecycle rule on `exports/` ends file and record
together, with no second store to keep in step. Must never know what is exported.
"""

from collections.abc import Sequence
from secrets import token_hex
from urllib.parse import quote

from engine.ports import Export
from infra.layout import EXPORT_RECORDS, export_from_json, export_name, export_record_name, export_to_json
from infra.s3 import Bucket, BucketSettings, Upload

__all__ = ["S3Exports"]

_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


_LOOKED_AT = 4
"""Records a new export looks at, from a place drawn anew: more than one, so that what expires does not pile up."""


class S3Exports:
    """An `ExportStore` in a bucket, whose links are `<public_endpoint>/exports/<id>`.

    Whoever serves that path checks the record's state and time and then redirects to `presigned`, which works
    for `redirect_seconds`: a link signed by a role's passing credentials would die with them.
    """

    def __init__(self, settings: BucketSettings, public_endpoint: str, *, redirect_seconds: int = 300) -> None:
        self._bucket = Bucket(settings)
        self._public_endpoint = public_endpoint.rstrip("/")
        self._redirect_seconds = redirect_seconds

    def put(self, export: Export) -> None:
        """Write or replace an export's record."""
        with self._bucket.aws.reachable():
            self._bucket.put(export_record_name(export.export_id), export_to_json(export))

    def get(self, export_id: str) -> Export | None:
        """An export's record, `None` when there is none."""
        found = self._bucket.get(export_record_name(export_id))
        return export_from_json(found.data) if found else None

    def sink(self, export: Export) -> Upload:
        """A new file for an export."""
        kind = _TYPES.get(export.format, "application/octet-stream")
        return self._bucket.upload(export_name(export), ContentType=kind)

    def link(self, export: Export) -> str:
        """`<public_endpoint>/exports/<id>`; where nobody serves that path, the file itself by a URL signed now.

        Raises:
            Unavailable: there are no credentials.
        """
        if not self._public_endpoint:
            return self._signed(export, "get_object", (export.expires_at - export.created_at) // 1_000_000)
        return f"{self._public_endpoint}/exports/{quote(export.export_id, safe='')}"

    def presigned(self, export: Export, method: str = "GET") -> str:
        """A URL made now that gives the file to whoever has it, as a download with a name; it is for `method` alone.

        Raises:
            Unavailable: there are no credentials.
        """
        return self._signed(export, "head_object" if method == "HEAD" else "get_object", self._redirect_seconds)

    def _signed(self, export: Export, operation: str, seconds: int) -> str:
        with self._bucket.aws.reachable():
            return self._bucket.client.generate_presigned_url(
                operation,
                Params={
                    **self._bucket.place(export_name(export)),
                    "ResponseContentDisposition": f'attachment; filename="hayfork.{export.format}"',
                },
                ExpiresIn=seconds,
            )

    def revoke(self, export_id: str) -> None:
        """Remove the file, then the record: a death in between leaves what a second call needs."""
        export = self.get(export_id)
        if export is not None:
            self._bucket.remove([export_name(export)])
            self._bucket.remove([export_record_name(export_id)])

    def expired(self, now: int) -> Sequence[str]:
        """Ids of exports whose time is over, first to expire first, of a few looked at: lifecycle ends all in time.

        Every new export asks, so a look costs two requests and a few records however many there are.
        """
        after = token_hex(8)
        names = [entry.name for entry in self._bucket.some(EXPORT_RECORDS, after, _LOOKED_AT)]
        if len(names) < _LOOKED_AT:
            names += [entry.name for entry in self._bucket.some(EXPORT_RECORDS, "", _LOOKED_AT - len(names))]
        found = []
        for name in dict.fromkeys(names):
            record = self._bucket.get(name)
            export = export_from_json(record.data) if record else None
            if export is not None and export.expires_at <= now:
                found.append((export.expires_at, export.export_id))
        return [export_id for _, export_id in sorted(found)]
