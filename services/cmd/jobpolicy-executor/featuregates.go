package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// featureGates are the gates of Kubernetes v1.37 that change what a Job
// controller does, and those of earlier versions that are always on since. The zero value has
// every gate at its default.
//
// It is the value of a flag with the name and syntax of kube-controller-manager's: a list
// of Name=true and Name=false, in one flag or in several. If a name occurs several times,
// the last one counts. Component-base's gates are not used: they cannot say why a gate is
// locked, and they bring AllAlpha and AllBeta, which mean nothing here.
type featureGates struct {
	given []string
	// workloadWithJob is off by default.
	workloadWithJob bool
	// keepStartTimeOnSuspend is true if MutableSchedulingDirectivesForSuspendedJobs is
	// turned off.
	keepStartTimeOnSuspend bool
}

// A gate is one feature gate.
type gate struct {
	name  string
	about string
	// set is nil if the gate cannot be turned off; locked says why.
	set    func(*featureGates, bool)
	locked string
}

const (
	lockedUpstream = "it is locked to true in Kubernetes"
	removed        = "Kubernetes v1.37 has no such gate any more, and always does it"
	lockedHere     = "an executor never acts on a view that is older than its own writes"
)

// gates are all known gates, in alphabetical order.
var gates = []gate{
	{name: "JobBackoffLimitPerIndex", locked: removed},
	{name: "JobManagedBy", locked: lockedUpstream},
	{name: "JobPodReplacementPolicy", locked: removed},
	{name: "JobSuccessPolicy", locked: removed},
	{
		name: "MutableSchedulingDirectivesForSuspendedJobs", about: "(BETA - default=true): a Job that is suspended loses its start time",
		set: func(g *featureGates, on bool) { g.keepStartTimeOnSuspend = !on },
	},
	{name: "SidecarContainers", locked: removed},
	{name: "StaleControllerConsistencyJob", locked: lockedHere},
	{
		name: "WorkloadWithJob", about: "(ALPHA - default=false): the pods of a Job are scheduled as its spec.scheduling says, by means of a Workload and a PodGroup; " +
			"the API server must serve scheduling.k8s.io/v1beta1, and have this gate and GenericWorkload",
		set: func(g *featureGates, on bool) { g.workloadWithJob = on },
	},
}

func gatesUsage() string {
	var lines, locked []string
	for _, g := range gates {
		if g.set == nil {
			locked = append(locked, g.name)
			continue
		}
		lines = append(lines, g.name+" "+g.about)
	}
	return "`Gates` that change what becomes of Jobs, in the syntax of the controller manager (Name=true,Name=false):\n" +
		strings.Join(lines, "\n") + "\nAlways true: " + strings.Join(locked, ", ") + "."
}

// String implements pflag.Value.
func (g *featureGates) String() string { return strings.Join(g.given, ",") }

// Type implements pflag.Value.
func (g *featureGates) Type() string { return "mapStringBool" }

// Set implements pflag.Value. Unlike kube-controller-manager, it refuses gates that would
// change nothing here, because such a name may be a typing error.
func (g *featureGates) Set(list string) error {
	for _, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if err := g.setOne(item); err != nil {
			return err
		}
		g.given = append(g.given, item)
	}
	return nil
}

func (g *featureGates) setOne(item string) error {
	name, text, ok := strings.Cut(item, "=")
	name = strings.TrimSpace(name)
	if !ok {
		return fmt.Errorf("missing bool value for %s", name)
	}
	on, err := strconv.ParseBool(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("invalid value of %s=%s: neither true nor false", name, text)
	}
	at := slices.IndexFunc(gates, func(known gate) bool { return known.name == name })
	if at < 0 {
		return fmt.Errorf("unrecognized feature gate: %s; there are %s", name, gateNames())
	}
	switch known := gates[at]; {
	case known.set != nil:
		known.set(g, on)
	case !on:
		return fmt.Errorf("cannot set feature gate %s to false: %s", name, known.locked)
	}
	return nil
}

func gateNames() string {
	var names []string
	for _, g := range gates {
		names = append(names, g.name)
	}
	return strings.Join(names, ", ")
}
