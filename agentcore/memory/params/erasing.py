"""Params and result of memory.erase: the contract, refusing unknown fields by name."""

from __future__ import annotations

from pydantic import Field, model_validator

from agentcore.memory.models import Flag, Identifier, Receipt, Strict


class EraseParams(Strict):
    """Whose memories go for good, from every place: all of the agent's, or those of one user within it."""

    user_id: Identifier | None = Field(None, description="This user's memories, and what was made of them.")
    all: Flag = Field(False, description="Everything that the agent has; instead of user_id.")
    confirm: Flag = Field(False, description="Needed: nothing brings it back.")

    @model_validator(mode="after")
    def _says_whose(self) -> EraseParams:
        if self.all == (self.user_id is not None):
            raise ValueError("give either user_id, or all: true")
        if not self.confirm:
            raise ValueError("erasing needs confirm: true")
        return self


class EraseResult(Strict):
    erased: dict[str, int] = Field(
        description="How much went in this call, by place: rows of tables, objects, jobs, copies."
    )
    verified: bool = Field(
        description="Afterwards every place was searched, and nothing was left or out of reach."
    )
    left: dict[str, int] = Field(
        default_factory=dict, description="What was left, by place: written meanwhile, or not to be read."
    )
    unreachable: dict[str, int] = Field(
        default_factory=dict,
        description="Copies in archives that this server does not use, by the archive's id; 'unknown' where "
        "none is recorded. They and their tombstones stay: erase again on a server that uses the archive.",
    )
    complete: bool = Field(True, description="False: the call's time ran out; the same call goes on.")
    signed_receipt: str | None = Field(
        None, description="What was erased, signed by the service; null while complete is false."
    )
    receipt: Receipt
