"""Memory in other people's frameworks: each module needs the extra of its name, the service needs none."""
