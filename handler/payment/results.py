"""What a payer is told, as results of a tool: what a call costs, why a payment bought nothing, and a receipt.

Decides the shapes of x402 over MCP, and that a receipt fits the room that pages keep back for it. Must never know a
message.

Source: x402 version 2, transport MCP: `PaymentRequired` in `structuredContent` and as JSON in `content[0].text`, the
receipt in `_meta["x402/payment-response"]`.
"""

from typing import Any

import mcp_types as types
from x402.schemas import PaymentRequired, PaymentRequirements, ResourceInfo

from handler.payment.facilitator import Settled
from handler.tools.table import TOOLS
from handler.wire import compact

__all__ = ["PAYMENT", "RECEIPT", "failed", "receipt", "required", "with_receipt"]

PAYMENT = "x402/payment"
"""Where in a request's `_meta` a payment stands."""

RECEIPT = "x402/payment-response"
"""Where in a result's `_meta` its receipt stands."""


def required(tool: str, requirement: PaymentRequirements, error: str, **more: Any) -> types.CallToolResult:
    """The error that says what to pay. `more` stands beside what x402 defines."""
    told = PaymentRequired(
        error=error,
        resource=ResourceInfo(url=f"mcp://tool/{tool}", description=TOOLS[tool].title, mime_type="text/plain"),
        accepts=[requirement],
    ).model_dump(by_alias=True, exclude_none=True)
    told |= more
    return types.CallToolResult(
        content=[types.TextContent(text=compact(told).decode())], structured_content=told, is_error=True
    )


def failed(
    tool: str, requirement: PaymentRequirements, settled: Settled, payer: str, error: str
) -> types.CallToolResult:
    """The error after a settlement that did not, or may not, have gone through."""
    response = {
        "success": False,
        "errorReason": settled.reason or f"settlement_{settled.outcome}",
        "transaction": "",
        "network": requirement.network,
        "payer": payer,
    }
    return required(tool, requirement, error, **{RECEIPT: response})


def receipt(requirement: PaymentRequirements, settled: Settled, payer: str) -> dict[str, Any]:
    """A `SettlementResponse` of fields that are bounded each; what else the facilitator said is left out."""
    return {
        "success": True,
        "transaction": settled.transaction,
        "network": requirement.network,
        "payer": payer,
        "amount": requirement.amount,
    }


def with_receipt(result: types.CallToolResult, told: dict[str, Any]) -> types.CallToolResult:
    """`result` with its receipt."""
    return result.model_copy(update={"meta": {**(result.meta or {}), RECEIPT: told}})
