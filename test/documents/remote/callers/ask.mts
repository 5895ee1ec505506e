import { readFileSync } from "node:fs";
import { credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { BadRequest, ErrorInfo } from "./node/google/rpc/error_details.js";
import { Status } from "./node/google/rpc/status.js";
import { DecideJobRequest, type DecideJobResponse, Disposition } from "./node/jobpolicy/v1/decide_job.js";
import { RestartPolicy } from "./node/jobpolicy/v1/job.js";
import { PolicyServiceClient } from "./node/jobpolicy/v1/policy_service.js";

const maxMessage = 16 << 20;
const policy = new PolicyServiceClient(
  process.argv[2],
  credentials.createSsl(readFileSync("tls/ca.crt"), readFileSync("tls/tls.key"), readFileSync("tls/tls.crt")),
  {
    "grpc.service_config": readFileSync("service-config.json", "utf8"),
    "grpc.max_receive_message_length": maxMessage,
    "grpc.max_send_message_length": maxMessage,
  },
);
const trace = new Metadata({ waitForReady: true });
trace.set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");

function ask(request: DecideJobRequest): Promise<DecideJobResponse> {
  return new Promise((resolve, reject) => {
    policy.decideJob(request, trace, { deadline: Date.now() + 5000 }, (error, decision) =>
      error ? reject(error) : resolve(decision),
    );
  });
}

// explain prints the code, the reason and the invalid fields of an error.
function explain(error: ServiceError) {
  const [encoded] = error.metadata.get("grpc-status-details-bin");
  for (const detail of Status.decode(encoded as Buffer).details) {
    if (detail.typeUrl.endsWith("/google.rpc.ErrorInfo")) {
      console.log(status[error.code], ErrorInfo.decode(detail.value).reason);
    }
    if (detail.typeUrl.endsWith("/google.rpc.BadRequest")) {
      const [violation] = BadRequest.decode(detail.value).fieldViolations;
      console.log(violation.field, violation.description);
    }
  }
}

const request = DecideJobRequest.fromPartial({
  requestId: "two-1",
  now: new Date(),
  job: { uid: Buffer.alloc(16), namespace: "default", name: "two" },
  spec: { parallelism: 2, completions: 2, backoffLimit: 6, restartPolicy: RestartPolicy.RESTART_POLICY_NEVER },
});
const decision = await ask(request);
if (decision.requestId !== request.requestId || decision.disposition !== Disposition.DISPOSITION_APPLY) {
  throw new Error(`not an answer to carry out: ${JSON.stringify(decision)}`);
}
console.log("pods to create:", decision.create?.count);

await ask({ ...request, now: undefined }).catch(explain);
policy.close();
