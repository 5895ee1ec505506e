package jobend

import (
	"fmt"
	"strings"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

var classes = jobpolicyv1.EndClass(0).Descriptor()

// ClassName is a class as conditions, metrics and documents write it, for example
// OutOfMemory. It is Unknown for a class that this version of the contract does not have.
func ClassName(class jobpolicyv1.EndClass) string {
	value := classes.Values().ByNumber(class.Number())
	if value == nil || class == jobpolicyv1.EndClass_END_CLASS_UNSPECIFIED {
		class = jobpolicyv1.EndClass_END_CLASS_UNKNOWN
		value = classes.Values().ByNumber(class.Number())
	}
	return options.EnumName(classes, value)
}

// ParseClass is the class with a name, as ClassName writes it. ok is false if this version of the contract has none of that name.
func ParseClass(name string) (class jobpolicyv1.EndClass, ok bool) {
	number, ok := options.EnumValue(classes, name)
	return jobpolicyv1.EndClass(number), ok
}

var problems = jobpolicyv1.PodStartProblem(0).Descriptor()

// problemName is a problem as conditions write it; empty for none, and for one that this version does not have.
func problemName(problem jobpolicyv1.PodStartProblem) string {
	value := problems.Values().ByNumber(problem.Number())
	if value == nil || problem == jobpolicyv1.PodStartProblem_POD_START_PROBLEM_UNSPECIFIED {
		return ""
	}
	return options.EnumName(problems, value)
}

// problemOf is the problem with a name; unspecified if there is none.
func problemOf(name string) jobpolicyv1.PodStartProblem {
	number, _ := options.EnumValue(problems, name)
	return jobpolicyv1.PodStartProblem(number)
}

// ruleOf is the rule with a name; unspecified if this version does not have it.
func ruleOf(name string) jobpolicyv1.Rule {
	for number := range jobpolicyv1.Rule_name {
		if rule := jobpolicyv1.Rule(number); rule.Name() == name {
			return rule
		}
	}
	return jobpolicyv1.Rule_RULE_UNSPECIFIED
}

// Sentence says for people how a Job failed.
func Sentence(end *jobpolicyv1.JobEnd) string {
	switch end.GetClass() {
	case jobpolicyv1.EndClass_END_CLASS_DEADLINE:
		if end.GetPodName() == "" {
			return "The Job was active for as long as it may be."
		}
		return fmt.Sprintf("Pod %s ran for as long as it may.", shown(end.GetPodName()))
	case jobpolicyv1.EndClass_END_CLASS_NEVER_STARTED:
		if end.GetPodName() == "" && end.GetRule() == jobpolicyv1.Rule_RULE_START_DEADLINE_PASSED {
			return "No pod of the Job ran before its deadline to start."
		}
		return subject(end) + " could not be started" + because(end) + "."
	case jobpolicyv1.EndClass_END_CLASS_OUT_OF_MEMORY:
		return subject(end) + " ran out of memory" + moreMemory(end) + "."
	case jobpolicyv1.EndClass_END_CLASS_INFRASTRUCTURE:
		return pod(end) + " was ended from outside" + because(end) + "."
	case jobpolicyv1.EndClass_END_CLASS_POLICY:
		return subject(end) + " failed" + exit(end) + ", as " + policyRule(end) + " of the pod failure policy describes."
	case jobpolicyv1.EndClass_END_CLASS_APPLICATION:
		return subject(end) + " failed" + exit(end) + "."
	}
	return "It is not known why the Job failed."
}

// moreMemory says how many times the memory of the template a pod might have had.
func moreMemory(end *jobpolicyv1.JobEnd) string {
	if end.GetRaisedResource() != jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY {
		return ""
	}
	return fmt.Sprintf(" with %.4g times the memory of the template, or the most that it may have", end.GetRaisedBy())
}

func subject(end *jobpolicyv1.JobEnd) string {
	if end.GetContainerName() == "" {
		return pod(end)
	}
	return fmt.Sprintf("Container %s of %s", shown(end.GetContainerName()), strings.ToLower(pod(end)[:1])+pod(end)[1:])
}

func pod(end *jobpolicyv1.JobEnd) string {
	if end.GetPodName() == "" {
		return "A pod"
	}
	return "Pod " + shown(end.GetPodName())
}

// because names the reason, if it tells more than that a container failed.
func because(end *jobpolicyv1.JobEnd) string {
	if end.GetReason() == "" || end.GetReason() == "Error" {
		return ""
	}
	return ": " + shown(end.GetReason())
}

func exit(end *jobpolicyv1.JobEnd) string {
	if end.GetExitCode() == 0 {
		return ""
	}
	return fmt.Sprintf(" with exit code %d", end.GetExitCode())
}

func policyRule(end *jobpolicyv1.JobEnd) string {
	if end.GetPolicyRuleName() == "" {
		return fmt.Sprintf("rule %d", end.GetPolicyRuleIndex())
	}
	return "rule " + shown(end.GetPolicyRuleName())
}

// shown is a name in a sentence. Other characters than those of names in Kubernetes are
// replaced, so that no name looks like the parts that follow the sentence.
func shown(name string) string {
	return strings.Map(func(r rune) rune {
		if plainRune(r) || r == ' ' {
			return r
		}
		return '_'
	}, name)
}
