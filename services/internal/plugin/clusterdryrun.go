package plugin

import (
	"cmp"
	"context"

	"k8s.io/client-go/rest"
)

// DryRun asks the API server to create an object of batch/v1 in a dry run, which stores
// nothing. body is the object as JSON. If namespace is empty, the Reader's is used. The API
// server validates the object and calls admission webhooks as for a real creation, and
// ignores fields that it does not know. err is an APIStatus if the API server refuses.
func (r *clusterReader) DryRun(ctx context.Context, resource, namespace string, body []byte) (warnings []string, err error) {
	result := r.batch.Post().Namespace(cmp.Or(namespace, r.Namespace)).Resource(resource).
		Param("dryRun", "All").Param("fieldValidation", "Ignore").
		SetHeader("Content-Type", "application/json").Body(body).
		WarningHandler(rest.NoWarnings{}).Do(ctx)
	for _, w := range result.Warnings() {
		warnings = append(warnings, w.Text)
	}
	return warnings, result.Error()
}
