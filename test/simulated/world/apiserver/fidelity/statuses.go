package fidelity

// jobStatus draws a status, about half of them bad.
func (d *drawer) jobStatus(before fields) fields {
	after := fields{}
	for k, v := range before {
		after[k] = v
	}
	after["startTime"] = "2026-01-01T00:00:00Z"
	after["active"] = int64(d.IntN(3))
	switch d.IntN(6) {
	case 0:
		after["succeeded"], after["failed"] = int64(d.IntN(3)), int64(d.IntN(3))
	case 1:
		after["conditions"] = []any{condition(pick(d, "SuccessCriteriaMet", "FailureTarget", "Suspended", "Complete"))}
	case 2:
		after["active"], after["ready"], after["terminating"] = int64(0), int64(0), int64(0)
		after["conditions"] = []any{condition("FailureTarget"), condition("Failed")}
	case 3:
		after["active"], after["ready"], after["terminating"] = int64(0), int64(0), int64(0)
		after["completionTime"] = pick(d, "2026-01-01T00:00:01Z", "2025-01-01T00:00:00Z")
		after["conditions"] = []any{condition("SuccessCriteriaMet"), condition("Complete")}
	case 4:
		after["uncountedTerminatedPods"] = fields{"succeeded": []any{"a"}, "failed": []any{pick(d, "a", "b")}}
	case 5:
		delete(after, "startTime")
		after["completedIndexes"] = pick(d, "0", "0-2", "x")
	}
	return after
}

func condition(kind string) fields {
	return fields{
		"type": kind, "status": "True", "reason": "Drawn",
		"lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": "2026-01-01T00:00:00Z",
	}
}

func (d *drawer) podStatus() fields {
	phase := pick(d, "Pending", "Running", "Succeeded", "Failed")
	state := fields{"running": fields{"startedAt": "2026-01-01T00:00:00Z"}}
	if phase == "Succeeded" || phase == "Failed" {
		state = fields{"terminated": fields{"exitCode": int64(d.IntN(2)), "reason": "Drawn"}}
	}
	return fields{
		"phase": phase,
		"containerStatuses": []any{fields{
			"name": "main", "image": "image", "imageID": "", "restartCount": int64(d.IntN(2)),
			"ready": phase == "Running", "state": state,
		}},
	}
}
