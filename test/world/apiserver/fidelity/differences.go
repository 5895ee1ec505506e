package fidelity

import "strings"

// What is known to differ, and why that does not matter to a simulated world.
//
//   - Server-side apply is answered with 415: nobody here uses it.
//   - The text of a 406 is upstream's handlers', not upstream's router's.
//   - A request that changes nothing but who set which field makes a new version
//     on a real server: there are no managed fields here. Such is an update with
//     another deletionTimestamp of what is being deleted.
//   - The status of a ResourceQuota is not kept: the server counts when it is asked.
//     A real quota is late, and counts a pod whose creation failed after admission.

// allow takes out of a reply what may differ.
func allow(c call, r reply) reply {
	if r.Code == 415 && c.contentType != "" {
		r.Body = strings.Contains(c.contentType, "patch") // Which patches a server knows.
	}
	if r.Code == 406 {
		r.Body = nil
	}
	return r
}
