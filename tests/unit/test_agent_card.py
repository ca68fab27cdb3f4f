"""The agent card validates against the A2A SDK's types and describes how to call the service."""

from __future__ import annotations

import copy

import pytest
from a2a.client import ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict

from agentcore.agent_card import A2A_CONTEXT, AGENT_CARD, BINDING, agent_card
from agentcore.memory.api import METHODS

URL = "https://memory.example/api/v1/jsonrpc"
CARD = agent_card(URL, "1.2.3")


@pytest.mark.shows("issue6-5-A2A-card")
def test_the_sdk_reads_the_card_without_an_unknown_field_and_misses_no_required_one() -> None:
    card = ParseDict(CARD, AgentCard())
    validate_proto_required_fields(card)
    assert parse_agent_card(copy.deepcopy(CARD)) == card
    assert AGENT_CARD == AGENT_CARD_WELL_KNOWN_PATH


def test_the_card_names_the_endpoint_the_token_and_the_extension() -> None:
    card = ParseDict(CARD, AgentCard())
    [interface] = card.supported_interfaces
    assert (interface.url, interface.protocol_binding) == (URL, BINDING)
    [requirement] = card.security_requirements
    [scheme] = requirement.schemes
    assert card.security_schemes[scheme].http_auth_security_scheme.scheme == "Bearer"
    assert [extension.uri for extension in card.capabilities.extensions] == [A2A_CONTEXT]
    assert not card.capabilities.streaming


def test_the_skills_name_methods_that_there_are() -> None:
    told = ", ".join(example for skill in CARD["skills"] for example in skill["examples"])
    named = set(told.split(", "))
    assert len(named) > len(CARD["skills"])
    assert named <= {method.name for method in METHODS}


def test_a_client_that_knows_only_the_bindings_of_a2a_is_told_so_before_it_sends_anything() -> None:
    with pytest.raises(ValueError, match="no compatible transports"):
        ClientFactory().create(ParseDict(CARD, AgentCard()))
