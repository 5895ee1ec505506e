package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jobpolicy.dev/engine/indexset"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxResourceStep is how often the resources of pods are raised at most. Any factor reaches any
// quantity by then, or nearly.
const maxResourceStep = 64

// allPods stands for the index of a Job that is not INDEXED, whose pods cannot be told apart.
const allPods int32 = -1

// raise says what pods get more of, because others have failed (options.next_try_resources); nil:
// nothing. It depends on the facts of the request only, so neither a restart nor a suspension
// changes it (invariant I10).
func raise(s *snapshot, create *jobpolicyv1.CreatePods) []*jobpolicyv1.RaisedPods {
	option := s.spec.GetOptions().GetNextTryResources()
	if option == nil {
		return nil
	}
	steps := nextSteps(s, option)
	if !s.indexed {
		if steps[allPods] == 0 {
			return nil
		}
		return []*jobpolicyv1.RaisedPods{raisedPods(option, steps[allPods])}
	}
	byStep := map[int32][]int32{}
	for ix := range readSet(create.GetIndexes()).All {
		if step := steps[ix]; step > 0 {
			byStep[step] = append(byStep[step], ix)
		}
	}
	var raised []*jobpolicyv1.RaisedPods
	for step := int32(1); step <= maxResourceStep; step++ {
		if indexes := byStep[step]; len(indexes) > 0 {
			pods := raisedPods(option, step)
			pods.Indexes = indexset.Of(indexes...).Message()
			raised = append(raised, pods)
		}
	}
	return raised
}

// nextSteps are the steps of the next pods by index, or allPods: that of the pods with the highest
// step, and one more if one of them failed in a way that raises.
func nextSteps(s *snapshot, option *jobpolicyv1.NextTryResources) map[int32]int32 {
	steps := map[int32]int32{}
	for _, try := range s.req.GetRetry().GetFailedTries() {
		key := allPods
		if s.indexed {
			if !s.inRange(try.Index) {
				continue
			}
			key = try.GetIndex()
		}
		step := try.GetResourceStep()
		if slices.ContainsFunc(try.GetContainerExits(), func(exit *jobpolicyv1.ContainerExit) bool { return raises(option, exit) }) {
			step = min(step+1, maxResourceStep)
		}
		steps[key] = max(steps[key], step)
	}
	return steps
}

// raises reports whether the end of a container raises the resources of the next pod.
func raises(option *jobpolicyv1.NextTryResources, exit *jobpolicyv1.ContainerExit) bool {
	if of := option.GetContainer(); of != "" && of != exit.GetContainerName() {
		return false
	}
	return outOfMemory(exit) && option.GetResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY ||
		slices.Contains(option.GetOnExitCodes(), exit.GetExitCode())
}

func raisedPods(option *jobpolicyv1.NextTryResources, step int32) *jobpolicyv1.RaisedPods {
	return &jobpolicyv1.RaisedPods{
		Step: step, Multiplier: multiplier(option, step),
		Container: option.GetContainer(), Resource: option.GetResource(), Max: option.GetMax(),
	}
}

func multiplier(option *jobpolicyv1.NextTryResources, step int32) float64 {
	factor := 2.0
	if option.Factor != nil {
		factor = option.GetFactor()
	}
	return power(factor, step)
}

// raisedText says in brackets what pods get more of; nothing if that is nothing.
func raisedText(raised []*jobpolicyv1.RaisedPods) string {
	var texts []string
	for _, r := range raised {
		text := fmt.Sprintf("%s times the %s of the template, at most %s", strconv.FormatFloat(r.GetMultiplier(), 'g', 4, 64), resourceNames[r.GetResource()], r.GetMax())
		if n := readSet(r.GetIndexes()).Len(); n > 0 {
			text = fmt.Sprintf("%d with %s", n, text)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, "; ") + ")"
}

var resourceNames = map[jobpolicyv1.RaisedResource]string{
	jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY: "memory",
	jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU:    "CPU",
}
