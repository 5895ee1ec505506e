package explain

import (
	"strings"

	"jobpolicy.dev/executor/writes"
)

// An obstacle is one kind of refusal of pods, or of a CronJob's Job, by a part of its text.
type obstacle struct {
	text string
	// why says what it means, before the text itself.
	why string
	// pods is what a person can do about a Job's pods; run, about the Job of a CronJob's run. The template of a Job
	// cannot be changed, that of a CronJob can. Without run, only pods are refused so.
	pods, run string
}

// startsThen ends what helps a run that is due.
const startsThen = "; the run starts then, unless spec.startingDeadlineSeconds are over."

// obstacles are in this order, because "forbidden" is in most refusals.
var obstacles = []obstacle{
	{
		"because it is being terminated", "its namespace is being deleted: ",
		"Nothing can be created in the namespace any more, and the Job goes with it. Create the Job in another one.",
		"Nothing can be created in the namespace any more, and the CronJob goes with it. Create the CronJob in another one.",
	},
	{
		"failed quota", "a quota asks for requests or limits that the pods do not have: ",
		"Create a LimitRange with defaults in the namespace: the Job goes on by itself. Or set requests and limits in the pod template of a new Job.", "",
	},
	{
		"failed calling webhook", "an admission webhook does not answer: ",
		"Fix the webhook, or set its failurePolicy to Ignore; the Job goes on by itself.",
		"Fix the webhook, or set its failurePolicy to Ignore" + startsThen,
	},
	{
		"admission webhook", "an admission webhook denies it: ",
		"Change the pod template so that the webhook allows it; the template of a Job cannot be changed, so create it anew.",
		"Change spec.jobTemplate of the CronJob so that the webhook allows its Jobs" + startsThen,
	},
	{
		"ValidatingAdmissionPolicy", "an admission policy denies it: ",
		"Change the pod template so that the policy allows it; the template of a Job cannot be changed, so create it anew.",
		"Change spec.jobTemplate of the CronJob so that the policy allows its Jobs" + startsThen,
	},
	{
		"violates PodSecurity", "the namespace's Pod Security Standard forbids the pods: ",
		"Set what it asks for in the pod template, in a new Job, or relax the namespace's label.", "",
	},
	{"error looking up service account", "the service account is missing: ", "Create the service account; the Job goes on by itself.", ""},
	{"no PriorityClass with name", "the priority class is missing: ", "Create the priority class; the Job goes on by itself. For another one, create the Job anew.", ""},
	{"pod rejected: RuntimeClass", "the runtime class is missing: ", "Create the runtime class; the Job goes on by itself. For another one, create the Job anew.", ""},
	{
		" is invalid: ", "",
		"Set what the message names in the pod template of a new Job. If a webhook or a LimitRange has set it, correct it there: the Job goes on by itself.",
		"Set what the message names in spec.jobTemplate of the CronJob. If a webhook has set it, correct it there" + startsThen,
	},
	{"forbidden", "it is forbidden: ", "Change what the message names; the Job tries again by itself.", "Change what the message names" + startsThen},
}

// anyOther is a refusal with another text.
var anyOther = obstacle{pods: "Change what the message names; the Job tries again by itself.", run: "Change what the message names" + startsThen}

func (o obstacle) change(ofRun bool) string {
	if ofRun {
		return o.run
	}
	return o.pods
}

// whyNotCreated reads the API server's refusal of pods, or, with ofRun, of the Job of a run.
func whyNotCreated(text string, ofRun bool) (why, change string) {
	text = strings.TrimSuffix(text, ".")
	switch {
	case strings.Contains(text, "admission changed the new"):
		return text + ", so it does not count and was deleted",
			"Find what changes it (kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies), and exempt it there; it is tried again by itself."
	case writes.ExceedsQuota(text) && ofRun:
		return "the quota is used up: " + text,
			"Raise the quota, or delete Jobs: also those that have ended count. Lower history limits, or ttlSecondsAfterFinished in the Job templates, keep fewer of them" + startsThen
	case writes.ExceedsQuota(text):
		return "the quota is used up: " + text, "Raise the quota, or wait until others give it back; the Job goes on by itself."
	}
	for _, o := range obstacles {
		if strings.Contains(text, o.text) && o.change(ofRun) != "" {
			return o.why + text, o.change(ofRun)
		}
	}
	return text, anyOther.change(ofRun)
}
