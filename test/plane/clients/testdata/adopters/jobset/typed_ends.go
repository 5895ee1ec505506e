package controllers

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// typedPattern begins a pattern that is about the typed end of a Job, and not about its message.
const typedPattern = "^jobpolicy.dev/"

// failureMatches reports whether one of the patterns of a rule matches how a Job failed: a typed one
// its typed end, any other one its message. It is called in place of anyMatchFound, which knows only the
// message.
func failureMatches(ctx context.Context, patterns []string, job *batchv1.Job, message string) bool {
	end := typedEnd(job)
	var ofMessage []string
	for _, pattern := range patterns {
		part, typed := strings.CutPrefix(pattern, typedPattern)
		if !typed {
			ofMessage = append(ofMessage, pattern)
			continue
		}
		match, err := endMatches(end, strings.TrimSuffix(part, "$"))
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "invalid pattern for onJobFailureMessagePatterns", "pattern", pattern)
		}
		if match {
			return true
		}
	}
	return anyMatchFound(ctx, ofMessage, message)
}

// endMatches reports whether an end has what a typed pattern names: a class, or a rule of the pod failure policy by its
// name. No end matches nothing.
func endMatches(end *jobpolicyv1.JobEnd, part string) (bool, error) {
	switch key, value, _ := strings.Cut(part, "="); {
	case key == "class":
		class, ok := jobend.ParseClass(value)
		if !ok {
			return false, fmt.Errorf("class is %q, expected one such as OutOfMemory", value)
		}
		return end.GetClass() == class, nil
	case key == "policyRuleName" && value != "":
		return end.GetPolicyRuleName() == value, nil
	}
	return false, fmt.Errorf("%q names no part of an end, expected class=... or policyRuleName=...", part)
}

// typedEnd is how a Job failed, by the condition that says it in fields; nil without one.
func typedEnd(job *batchv1.Job) *jobpolicyv1.JobEnd {
	for _, c := range job.Status.Conditions {
		if c.Type == jobend.ConditionType && c.Status == corev1.ConditionTrue {
			end, _ := jobend.Read(c.Reason, c.Message)
			return end
		}
	}
	return nil
}
