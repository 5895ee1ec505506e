# The submitter succeeds, but Ray does not know its job.
rayjob '' true
deployed Failed
