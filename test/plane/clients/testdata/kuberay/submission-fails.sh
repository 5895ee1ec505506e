# The submitter fails as often as it may, and the Ray job never begins.
BACKOFF=1 rayjob '' 'exit 1'
deployed Failed
