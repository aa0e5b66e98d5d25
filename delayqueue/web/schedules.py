"""The verbs on schedules. A handler reads, calls one verb of the queue, answers."""

from delayqueue.web import views
from delayqueue.web.api import Api
from delayqueue.web.http import HttpRequest, HttpResponse
from delayqueue.web.schedule_requests import ScheduleRequest, SchedulesRequest
from delayqueue.web.subscriber_requests import NameRequest


async def schedule(api: Api, request: HttpRequest) -> HttpResponse:
    """Have jobs pushed at the times of a calendar, or every so often."""
    asked = await api.read(request, ScheduleRequest)
    schedule = asked.schedule(api.max_body_bytes)
    next_ms = await api.queue.schedules.schedule(schedule, asked.checked_if_exists())
    return api.ok(request, {"next": views.seconds(next_ms)})


async def unschedule(api: Api, request: HttpRequest) -> HttpResponse:
    """Have a schedule push no more jobs."""
    asked = await api.read(request, NameRequest)
    await api.queue.schedules.unschedule(asked.checked_name())
    return api.ok(request)


async def schedules(api: Api, request: HttpRequest) -> HttpResponse:
    """The schedules of a topic, or all, and when each occurs next."""
    asked = await api.read(request, SchedulesRequest)
    topic = asked.checked_topic()
    found = await api.queue.schedules.all()
    return api.ok(
        request,
        [views.schedule(planned) for planned in found if topic in {"", planned.schedule.topic}],
    )
