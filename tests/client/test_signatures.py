"""The methods of both clients as other programs see them: help(), inspect, mocks with a spec."""

import inspect
import pydoc
from typing import Any, get_type_hints
from unittest.mock import create_autospec

import pytest

import delayqueue
from delayqueue import AsyncClient, Client
from delayqueue.client.api_request import verb
from delayqueue.client.verbs import Verbs

NAMES = sorted(name for name in dir(Verbs) if isinstance(inspect.getattr_static(Verbs, name), verb))


@pytest.mark.parametrize("name", NAMES)
def test_a_method_has_the_signature_that_it_was_written_with(
    kind: type[Client | AsyncClient], name: str
) -> None:
    written = inspect.signature(inspect.getattr_static(Verbs, name).build)
    method = getattr(kind, name)
    found = inspect.signature(method)
    assert found.parameters == written.parameters
    assert f"ApiRequest[{found.return_annotation}]" == written.return_annotation
    assert inspect.iscoroutinefunction(method) == (kind is AsyncClient)
    assert method.__qualname__ == f"{kind.__name__}.{name}"
    assert method.__doc__
    assert get_type_hints(method).keys() == {*written.parameters, "return"} - {"self"}


def test_help_shows_the_arguments_and_the_result(kind: type[Client | AsyncClient]) -> None:
    shown = _unwrapped(pydoc.render_doc(kind.push))
    assert "push(self,topic:str,body:Payload=," in shown
    assert "->str" in shown
    assert "push(self,topic:str" in _unwrapped(pydoc.render_doc(kind))


def _unwrapped(shown: str) -> str:
    """Without blanks: since Python 3.13, long signatures are wrapped. Since 3.14, annotations are not quoted."""
    return "".join(pydoc.plain(shown).replace("|", "").replace("'", "").split())


def test_a_mock_with_a_spec_takes_what_the_client_takes() -> None:
    client: Any = create_autospec(Client, instance=True)
    client.push.return_value = "id"
    assert client.push("mail", "hello", delay=5) == "id"
    client.push.assert_called_once_with("mail", "hello", delay=5)
    with pytest.raises(TypeError):
        client.push("mail", dely=5)
    with pytest.raises(AttributeError):
        client.posh("mail")


async def test_a_mock_of_the_async_client_is_awaited() -> None:
    client: Any = create_autospec(AsyncClient, instance=True)
    client.pop.return_value = None
    assert await client.pop("mail", wait=5) is None
    with pytest.raises(TypeError):
        client.pop("mail", weight=5)


def test_a_method_that_a_subclass_overrides_stays_so() -> None:
    class Quiet(Client):
        def stats(self, **_: Any) -> Any:
            return "nobody"

    assert Quiet().stats() == "nobody"
    assert Quiet.push is Client.push


def test_the_package_shows_what_it_imports_on_first_use() -> None:
    assert {*delayqueue.__all__, "__version__"} <= {*dir(delayqueue)}
