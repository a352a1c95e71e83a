"""An S3-compatible server on loopback that keeps a bucket in memory."""

import contextlib
import logging
from collections.abc import Iterator

from needed import need_package


@contextlib.contextmanager
def object_server() -> Iterator[str]:
    """Start the server; the value is a pattern of a store's URL, with `{}` for its prefix, a key and a secret."""
    need_package("obstore", "moto", "flask", "flask_cors")
    import boto3  # type: ignore[import-untyped]
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it writes a line for each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="hidden-word",
        ).create_bucket(Bucket="bucket")
        yield f"s3://key:hidden-word@bucket/{{}}?endpoint={endpoint}&region=us-east-1"
    finally:
        server.stop()
