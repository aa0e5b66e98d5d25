"""The figures of /metrics, easy to query."""

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.api_client import Api


@dataclass(frozen=True)
class Samples:
    """All samples of one scrape."""

    samples: list[Sample]

    def rows(self, name: str) -> dict[tuple[str, ...], float]:
        """The values of a name, by their labels' values in the order of the labels' names."""
        return {
            tuple(value for _, value in sorted(sample.labels.items())): sample.value
            for sample in self.samples
            if sample.name == name
        }

    def sum(self, name: str, **labels: str) -> float:
        """The sum of a name's values with these labels, over all other labels, such as the worker."""
        return sum(sample.value for sample in self._matching(name, labels))

    def one(self, name: str, **labels: str) -> float:
        """The only value of a name with these labels."""
        (found,) = self._matching(name, labels)
        return found.value

    def _matching(self, name: str, labels: dict[str, str]) -> list[Sample]:
        return [
            sample
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]


def samples_of(text: str) -> Samples:
    """Read a scrape. No series may occur in it twice."""
    samples = [
        sample for family in text_string_to_metric_families(text) for sample in family.samples
    ]
    series = [(sample.name, *sorted(sample.labels.items())) for sample in samples]
    assert len(series) == len(set(series))
    return Samples(samples)


async def scrape(api: Api) -> Samples:
    """GET /metrics."""
    async with api.session.get(f"{api.url}/metrics") as response:
        assert response.status == 200, await response.text()
        return samples_of(await response.text())


def grown(before: Samples, after: Samples, name: str, **labels: str) -> float:
    """By how much the sum of a metric has grown."""
    return after.sum(name, **labels) - before.sum(name, **labels)
