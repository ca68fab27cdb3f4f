"""Where the vectors that are searched stand: in their place, or beside it while they move there."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import sql


@dataclass(frozen=True)
class VectorPlace:
    """What statements are shaped with: a memory's vector, and whether it has one of the model asked for.

    An index over one place serves no other: `index_prefix` stands before the model in its comment.
    """

    stored: sql.SQL
    held: sql.SQL
    index_prefix: str = ""

    @property
    def shape(self) -> dict[str, sql.Composable]:
        """The placeholders it fills."""
        return {"stored": self.stored, "held": self.held}

    def index_model(self, model: str) -> str:
        """What the indexes over this model's vectors in this place are known by."""
        return f"{self.index_prefix}{model}"


SETTLED = VectorPlace(sql.SQL("m.embedding"), sql.SQL("m.embedding_model = %(model)s"))
MOVING = VectorPlace(
    sql.SQL("(CASE WHEN m.embedding_model = %(model)s THEN m.embedding ELSE m.next_embedding END)"),
    sql.SQL("(m.embedding_model = %(model)s OR m.next_embedding_model = %(model)s)"),
    "moving:",
)
