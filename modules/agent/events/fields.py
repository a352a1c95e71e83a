"""The types of events' fields: accepted values and JSON forms."""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, PlainValidator

from ..chat.json_forms import call_from, message_to_dict, messages_from, plain_object, usage_from, usage_to_dict
from ..chat.messages import Message
from ..chat.tool_calls import ToolCall
from ..chat.truncation import cut_middle
from ..chat.usage import Usage
from ..generators.protocol import Generator
from ..generators.recorded_error import ERROR_SHOWN, error_to_dict, recordable_error
from ..reactions import Reaction, reaction_from_dict
from .metrics import MetricSeries
from .model_name import generator_from


def _cut(value: Any) -> Any:
    return cut_middle(value, ERROR_SHOWN) if isinstance(value, str) else value


def _error(value: Any) -> Exception | None:
    return None if value is None else recordable_error(value)


def _error_or_text(value: Any) -> Exception | str | None:
    return _cut(value) if isinstance(value, str) else _error(value)


def _error_document(value: Any) -> Any:
    return error_to_dict(value) if isinstance(value, Exception) else value


def _reaction(value: Any) -> Reaction | None:
    if value is None or isinstance(value, Reaction):
        return value
    return reaction_from_dict(plain_object(value))


def _metrics(value: Any) -> dict[str, MetricSeries]:
    return {str(name): MetricSeries.of(series) for name, series in dict(value).items()}


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _in_json(write: Any) -> PlainSerializer:
    return PlainSerializer(write, when_used="json")


Moment: TypeAlias = Annotated[datetime, AfterValidator(_utc)]
"""A time in UTC; one without a zone is taken as UTC."""

Document: TypeAlias = Annotated[dict[str, Any], PlainValidator(plain_object)]
"""JSON values by name; a value without a JSON form becomes its text."""

OptionalDocument: TypeAlias = Annotated[
    dict[str, Any] | None, PlainValidator(lambda v: None if v is None else plain_object(v))
]
Documents: TypeAlias = Annotated[list[dict[str, Any]], PlainValidator(lambda many: [plain_object(v) for v in many])]

ShortText: TypeAlias = Annotated[str | None, BeforeValidator(_cut)]
"""A text whose middle is cut out beyond 2,000 characters."""

Error: TypeAlias = Annotated[Exception, PlainValidator(recordable_error), _in_json(_error_document)]
OptionalError: TypeAlias = Annotated[Exception | None, PlainValidator(_error), _in_json(_error_document)]
ErrorOrText: TypeAlias = Annotated[Exception | str | None, PlainValidator(_error_or_text), _in_json(_error_document)]

Messages: TypeAlias = Annotated[
    list[Message],
    PlainValidator(messages_from),
    _in_json(lambda many: [message_to_dict(message) for message in many]),
]
OptionalMessage: TypeAlias = Annotated[
    Message | None,
    PlainValidator(lambda v: None if v is None else messages_from(v)[0]),
    _in_json(lambda v: None if v is None else message_to_dict(v)),
]
Call: TypeAlias = Annotated[ToolCall, PlainValidator(call_from), _in_json(lambda call: call.to_dict())]
StepUsage: TypeAlias = Annotated[Usage, PlainValidator(usage_from), _in_json(usage_to_dict)]
OptionalGenerator: TypeAlias = Annotated[
    Generator | None, PlainValidator(generator_from), _in_json(lambda g: None if g is None else {"model": g.model})
]
OptionalReaction: TypeAlias = Annotated[
    Reaction | None, PlainValidator(_reaction), _in_json(lambda r: None if r is None else r.to_dict())
]
Metrics: TypeAlias = Annotated[
    dict[str, MetricSeries],
    PlainValidator(_metrics),
    _in_json(lambda series: {name: one.to_list() for name, one in series.items()}),
]
