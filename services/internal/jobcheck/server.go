package jobcheck

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/services/internal/manifest"
)

// dryRun is the check by an API server.
var dryRun = Description{"dry-run", "The API server takes the object in a dry run (with --dry-run=server)."}

// AddAnswer adds the answer of an API server to the creation of an object in a dry run: its
// warnings, and the errors of a refusal at their fields. It leaves out errors at fields
// that already have one. That the object exists already is no error. If err is not about
// the object, AddAnswer returns it.
func AddAnswer(found []Finding, o *manifest.Object, warnings []string, err error) ([]Finding, error) {
	s := &subject{check: dryRun.Name}
	for _, text := range warnings {
		s.at(Warning, "", text)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		status, refused := refusal(err)
		if !refused {
			return nil, err
		}
		if causes := status.Details.Causes; len(causes) > 0 {
			for _, cause := range causes {
				s.at(Error, cause.Field, cause.Message)
			}
		} else {
			s.at(Error, "", status.Message)
		}
	}
	local := found
	for _, f := range place(o, s.found) {
		known := slices.ContainsFunc(local, func(k Finding) bool {
			return k.Severity == Error && f.Severity == Error && k.Path == f.Path
		})
		if !known {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

// refusal returns the status of a refusal of the object. It reports false for errors that
// are not about the object: the user is unknown, the API server is too busy or has failed,
// or it did not answer.
func refusal(err error) (metav1.Status, bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err) {
		return metav1.Status{}, false
	}
	status := answer.Status()
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	return status, status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError
}
