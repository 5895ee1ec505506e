# The one place of JobSet that has to change: where it asks whether its success policy is met, "not known yet" and an
# error must be able to come back.
/completed := executeSuccessPolicy(js, ownedJobs, updateStatusOpts); completed {$/ {
	s/completed := executeSuccessPolicy(/completed, wait, err := askSuccessPolicy(ctx, /
	s/; completed {$/; completed || wait > 0 || err != nil {/
	n
	s/{}, nil$/{RequeueAfter: wait}, err/
}
