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

// dryRun is the check of what an API server says to an object.
var dryRun = Description{"dry-run", "The API server takes the object in a dry run (with --dry-run=server)."}

// AddAnswer adds what an API server answered to the creation of an object in a dry run: its
// warnings, and its refusal, at the fields that it names. It leaves out errors at fields
// that already have one. An object that is already there was valid. An err that says
// nothing of the object is returned.
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
	for _, f := range place(o, s.found) {
		known := slices.ContainsFunc(found, func(k Finding) bool {
			return k.Severity == Error && f.Severity == Error && k.Path == f.Path
		})
		if !known {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

// refusal tells answers that are about the object from those that are not: the user is
// unknown, or the API server asks to come back later.
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
