import sys

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

sys.path.append("python")
from google.rpc import error_details_pb2, status_pb2
from jobpolicy.v1 import decide_job_pb2, job_pb2, policy_service_pb2_grpc

MAX_MESSAGE = 16 << 20
TRACE = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def ask(policy, request):
    return policy.DecideJob(request, timeout=5, wait_for_ready=True, metadata=TRACE)


def explain(error):
    """Prints the code, the reason and the invalid fields of an error."""
    details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status_pb2.Status.FromString(details).details:
        if detail.Unpack(info):
            print(error.code().name, info.reason)
        if detail.Unpack(bad):
            print(bad.field_violations[0].field, bad.field_violations[0].description)


credentials = grpc.ssl_channel_credentials(read("tls/ca.crt"), read("tls/tls.key"), read("tls/tls.crt"))
options = [
    ("grpc.service_config", read("service-config.json").decode()),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
]
with grpc.secure_channel(sys.argv[1], credentials, options) as channel:
    policy = policy_service_pb2_grpc.PolicyServiceStub(channel)
    now = Timestamp()
    now.GetCurrentTime()
    request = decide_job_pb2.DecideJobRequest(
        request_id="two-1",
        now=now,
        job=job_pb2.JobRef(uid=bytes(16), namespace="default", name="two"),
        spec=job_pb2.JobSpec(parallelism=2, completions=2, backoff_limit=6, restart_policy=job_pb2.RESTART_POLICY_NEVER),
    )
    decision = ask(policy, request)
    if decision.request_id != request.request_id or decision.disposition != decide_job_pb2.DISPOSITION_APPLY:
        sys.exit(f"not an answer to carry out: {decision}")
    print("pods to create:", decision.create.count)

    request.ClearField("now")
    try:
        ask(policy, request)
    except grpc.RpcError as error:
        explain(error)
