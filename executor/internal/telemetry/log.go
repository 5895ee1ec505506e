package telemetry

import (
	"log/slog"

	batchv1 "k8s.io/api/batch/v1"
)

// JobAttrs are the attributes of a log line about a Job.
func JobAttrs(job *batchv1.Job) []any {
	return []any{slog.String("namespace", job.Namespace), slog.String("job", job.Name), slog.String("uid", string(job.UID))}
}
