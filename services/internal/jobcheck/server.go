package jobcheck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jobpolicy.dev/services/internal/manifest"
)

// dryRun is the check by an API server.
var dryRun = Description{"dry-run", "The API server takes the object, and the next run of a CronJob, in a dry run (with --dry-run=server)."}

// An Answer is what an API server says of the creation of an object in a dry run.
type Answer struct {
	Warnings []string
	Err      error
	// OfRun says that the object was the Job that a CronJob would create.
	OfRun bool
}

// Accepted reports whether the API server takes the object. That it exists already is no
// reason against it.
func (a Answer) Accepted() bool { return a.Err == nil || apierrors.IsAlreadyExists(a.Err) }

// AddAnswer adds an answer to the findings on an object: its warnings, and the errors of a
// refusal at their fields. It leaves out errors at fields that already have one. If the error
// is not about the object, AddAnswer returns it.
func AddAnswer(found []Finding, o *manifest.Object, a Answer) ([]Finding, error) {
	s := &subject{check: dryRun.Name}
	for _, text := range a.Warnings {
		s.at(Warning, "", text)
	}
	if !a.Accepted() {
		if err := s.refusedBy(a); err != nil {
			return nil, err
		}
	}
	local := found
	for _, f := range place(o, s.found) {
		known := slices.ContainsFunc(local, func(k Finding) bool {
			there := k.Path == f.Path || strings.HasPrefix(k.Path, f.Path+"[")
			return there && k.Severity == f.Severity && (k.Severity == Error || k.Text == f.Text)
		})
		if !known {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

// refusedBy reports a refusal. It returns the error if that is not about the object.
func (s *subject) refusedBy(a Answer) error {
	status, refused := refusal(a.Err)
	switch {
	case !refused:
		return a.Err
	case a.OfRun && strings.Contains(status.Message, `cannot create resource "jobs"`):
		// The controller creates the runs with its own rights, not with those of the user.
		s.at(Warning, "", "the Job of a run could not be tried: "+status.Message)
		return nil
	}
	causes := status.Details.Causes
	if len(causes) == 0 {
		causes = []metav1.StatusCause{{Message: status.Message}}
	}
	for _, cause := range causes {
		if a.OfRun {
			cause.Field, cause.Message = inTemplate(cause.Field), everyRun+cause.Message
		}
		s.at(Error, cause.Field, cause.Message)
	}
	return nil
}

// inTemplate is the path in a CronJob of a field of its runs.
func inTemplate(path string) string {
	if path == "metadata.name" || path == "" {
		return path
	}
	return "spec.jobTemplate." + path
}

// Run is the Job that the controller would create now for a CronJob, from what the manifest
// says: the fields that it has, without defaults.
func Run(o *manifest.Object, now time.Time) ([]byte, error) {
	var cron struct {
		Spec struct {
			JobTemplate struct {
				Metadata struct {
					Labels      map[string]string `json:"labels,omitempty"`
					Annotations map[string]string `json:"annotations,omitempty"`
				} `json:"metadata"`
				Spec json.RawMessage `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(o.JSON, &cron); err != nil {
		return nil, err
	}
	template := cron.Spec.JobTemplate
	s := subject{name: o.CronJob.Name, object: &o.CronJob.ObjectMeta}
	return json.Marshal(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "spec": template.Spec,
		"metadata": map[string]any{
			"name":      fmt.Sprintf("%s-%d", s.fullName(), now.Unix()/60),
			"namespace": o.CronJob.Namespace, "labels": template.Metadata.Labels, "annotations": template.Metadata.Annotations,
		},
	})
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
