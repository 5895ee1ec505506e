package answer

import (
	"fmt"
	"math"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
	"jobpolicy.dev/proto/podfacts"
)

// alike are the pods to create for a Job that is not INDEXED.
func alike(create *jobpolicyv1.CreatePods) []NewPod {
	pods := make([]NewPod, max(0, create.GetCount()))
	if len(create.GetRaised()) > 0 {
		for i := range pods {
			pods[i].Raised = create.GetRaised()[0]
		}
	}
	return pods
}

// raisedIndexes says which indexes get other resources than the template says.
func raisedIndexes(create *jobpolicyv1.CreatePods) map[int32]*jobpolicyv1.RaisedPods {
	raised := map[int32]*jobpolicyv1.RaisedPods{}
	for _, some := range create.GetRaised() {
		for _, r := range some.GetIndexes().GetRanges() {
			for i := int64(r.GetFirst()); i <= int64(r.GetLast()); i++ {
				raised[int32(i)] = some
			}
		}
	}
	return raised
}

// checkRaised checks what pods get more of, and that it is said of each pod once.
func checkRaised(create *jobpolicyv1.CreatePods) error {
	wanted := map[int32]bool{}
	for _, pod := range NewPods(&jobpolicyv1.CreatePods{Indexes: create.GetIndexes()}) {
		wanted[*pod.Index] = true
	}
	for i, raised := range create.GetRaised() {
		field := fmt.Sprintf("create.raised[%d]", i)
		if err := checkRaise(field, raised); err != nil {
			return err
		}
		indexed := create.GetIndexes() != nil
		if indexed != (raised.GetIndexes() != nil) || !indexed && i > 0 {
			return fmt.Errorf("%s.indexes: want indexes for an INDEXED Job, and otherwise one entry without", field)
		}
		if err := takeIndexes(field+".indexes", raised.GetIndexes(), wanted); err != nil {
			return err
		}
	}
	return nil
}

func checkRaise(field string, r *jobpolicyv1.RaisedPods) error {
	switch {
	case r.GetStep() < 1 || r.GetStep() > podfacts.MaxResourceStep:
		return fmt.Errorf("%s.step is %d, want 1 to %d", field, r.GetStep(), podfacts.MaxResourceStep)
	case !(r.GetMultiplier() > 1): // Also if it is not a number.
		return fmt.Errorf("%s.multiplier is %v, want more than 1", field, r.GetMultiplier())
	case r.GetResource() == jobpolicyv1.RaisedResource_RAISED_RESOURCE_UNSPECIFIED:
		return fmt.Errorf("%s.resource is not set", field)
	case !options.PositiveQuantity(r.GetMax()):
		return fmt.Errorf("%s.max is %q, want a quantity above 0", field, r.GetMax())
	}
	return nil
}

// takeIndexes takes the indexes of a set out of those that are wanted. It stops at the first that is
// not wanted, so it takes no longer than there are wanted ones, whatever the ranges say.
func takeIndexes(field string, set *jobpolicyv1.IndexSet, wanted map[int32]bool) error {
	if err := CheckSet(field, set, math.MaxInt32-1); err != nil {
		return err
	}
	for _, r := range set.GetRanges() {
		for ix := r.GetFirst(); ix <= r.GetLast(); ix++ {
			if !wanted[ix] {
				return fmt.Errorf("%s has %d, want each of create.indexes once at most", field, ix)
			}
			delete(wanted, ix)
		}
	}
	return nil
}
