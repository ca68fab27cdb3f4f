"""Parts of a context: quoting, rendering, shortening, filling the budget. Pure; the plan is `compression`."""
