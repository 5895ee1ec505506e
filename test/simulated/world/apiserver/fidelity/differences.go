package fidelity

import "strings"

// The known differences, and why they do not matter to a simulated world.
//
//   - Server-side apply is answered with 415: nobody here uses it.
//   - The text of a 406 is that of upstream's handlers, not that of upstream's router.
//   - A request that changes nothing but who set which field makes a new version on a
//     real server, but not here, where there are no managed fields. An example is an update
//     of an object that is being deleted, with another deletionTimestamp.
//   - The status of a ResourceQuota is not kept: the server counts the pods at each check.
//     A real quota is late, and counts a pod whose creation failed after admission.

// allow removes from a reply what may differ.
func allow(c call, r reply) reply {
	if r.Code == 415 && c.contentType != "" {
		r.Body = strings.Contains(c.contentType, "patch") // Which patches a server knows.
	}
	if r.Code == 406 {
		r.Body = nil
	}
	return r
}
