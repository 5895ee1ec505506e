package jobcheck

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine"
)

// manifestFields are fields of the contract that have another path in a manifest.
var manifestFields = map[string]string{
	"spec.restart_policy": "spec.template.spec.restartPolicy",
}

var underscore = regexp.MustCompile(`_([a-z])`)

// ManifestField is the path in a manifest of a field of the contract.
func ManifestField(field string) string {
	if path, ok := manifestFields[field]; ok {
		return path
	}
	return underscore.ReplaceAllStringFunc(field, func(s string) string { return strings.ToUpper(s[1:]) })
}

// contractWords replaces the contract's words for values by those of a manifest.
var contractWords = strings.NewReplacer(
	"COMPLETION_MODE_INDEXED", "completionMode: Indexed",
	"COMPLETION_MODE_NON_INDEXED", "completionMode: NonIndexed",
	"RESTART_POLICY_NEVER", "restartPolicy: Never",
	"RESTART_POLICY_ON_FAILURE", "restartPolicy: OnFailure",
	"POD_REPLACEMENT_POLICY_FAILED", "Failed",
	"POD_REPLACEMENT_POLICY_TERMINATING_OR_FAILED", "TerminatingOrFailed",
	"FAIL_INDEX", "FailIndex",
)

var snake = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b`)

// manifestText writes a description of the contract in the words of a manifest.
func manifestText(text string) string {
	return snake.ReplaceAllStringFunc(contractWords.Replace(text), ManifestField)
}

// InManifest writes an error of the engine about a request in the words of the
// manifest that the request was made of. Other errors stay as they are.
func InManifest(err error) error {
	var invalid *engine.InvalidRequestError
	if !errors.As(err, &invalid) {
		return err
	}
	var lines []error
	for _, v := range invalid.Violations {
		lines = append(lines, errors.New(ManifestField(v.Field)+": "+manifestText(v.Description)))
	}
	return errors.Join(lines...)
}

// RestartPolicyProblem says what is wrong with the restart policy of a Job's pods. Empty:
// nothing is wrong.
func RestartPolicyProblem(spec *batchv1.JobSpec) string {
	switch p := spec.Template.Spec.RestartPolicy; p {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
		return ""
	case "":
		return "is required: expected Never or OnFailure"
	default:
		return fmt.Sprintf("%q: expected Never or OnFailure", p)
	}
}
