package cluster

import (
	"cmp"
	"context"

	"k8s.io/client-go/rest"
)

// DryRun asks the API server to create an object of batch/v1 and to keep nothing of it.
// body is the object as JSON; namespace is its own, empty for the Reader's. The API server
// validates, and calls admission webhooks, as if it were real. It ignores fields that it
// does not know. err is the API server's refusal (an APIStatus), or that it cannot be asked.
func (r *Reader) DryRun(ctx context.Context, resource, namespace string, body []byte) (warnings []string, err error) {
	result := r.batch.Post().Namespace(cmp.Or(namespace, r.Namespace)).Resource(resource).
		Param("dryRun", "All").Param("fieldValidation", "Ignore").
		SetHeader("Content-Type", "application/json").Body(body).
		WarningHandler(rest.NoWarnings{}).Do(ctx)
	for _, w := range result.Warnings() {
		warnings = append(warnings, w.Text)
	}
	return warnings, result.Error()
}
