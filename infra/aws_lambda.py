"""Work handed to another Lambda function, which nobody waits for.

Must never know what the work is beyond its event.
"""

import json

from infra.aws import Aws, AwsSettings

__all__ = ["LambdaInvoker"]


class LambdaInvoker:
    """Invokes `function`, a name or an alias's ARN, asynchronously: Lambda keeps the event and tries it again."""

    def __init__(self, function: str, aws: AwsSettings) -> None:
        self._function = function
        self._aws = Aws(aws)

    def finish_export(self, export_id: str) -> None:
        """Have a running export written by the function.

        Raises:
            Unavailable: the event could not be handed over.
        """
        with self._aws.reachable():
            self._aws.functions().invoke(
                FunctionName=self._function,
                InvocationType="Event",
                Payload=json.dumps({"export": export_id}).encode(),
            )
