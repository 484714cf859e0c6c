"""A page of somebody else, at a name of its own, that tries to reach the app."""

from collections.abc import Iterator
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from tests.browser.served import serve

HOST = "evil.example"
# What it tries, and what came of each, as the title of the page.
PAGE = """<!doctype html><title>trying</title><body><script type="module">
const url = %(url)r, api = `${url}api/workspaces`;
const results = [];
async function attempt(name, work) {
  const outcome = await work().catch(() => 'refused');
  results.push(`${name}: ${outcome}`);
}
const element = (name, fields) => new Promise((resolve) => {
  const made = Object.assign(document.createElement(name), fields);
  made.onload = () => resolve('loaded'); made.onerror = () => resolve('refused');
  document.body.append(made);
});
const json = { method: 'POST', credentials: 'include', body: '{"path": "/"}' };
await attempt('read', async () => (await fetch(api, { credentials: 'include' })).status);
await attempt('blind', async () =>
  (await fetch(api, { mode: 'no-cors', credentials: 'include' })).type);
await attempt('post', async () =>
  (await fetch(api, { ...json, headers: { 'content-type': 'application/json' } })).status);
await attempt('plain post', async () => (await fetch(api, { ...json, mode: 'no-cors' })).type);
await attempt('image', () => element('img', { src: `${url}favicon.svg` }));
await attempt('api image', () => element('img', { src: api }));
await attempt('script', () => element('script', { src: api }));
await attempt('stream', () => new Promise((resolve) => {
  const source = new EventSource(`${api}/x/events`, { withCredentials: true });
  source.onopen = () => resolve('open');
  source.onerror = () => { source.close(); resolve('refused'); };
}));
await attempt('socket', () => new Promise((resolve) => {
  const socket = new WebSocket(url.replace('http', 'ws') + 'api/workspaces');
  socket.onopen = () => resolve('open'); socket.onerror = () => resolve('refused');
}));
document.title = results.join(', ');
</script>
<form method="post" action="%(url)sapi/workspaces" enctype="text/plain">
<input name='{"path": "/", "x": "' value='"}'><button>Win</button></form>
<iframe src="%(url)s" title="app"></iframe>
"""


@contextmanager
def foreign_page(url: str) -> Iterator[str]:
    """Serves the page that attacks the server at `url`; gives its address."""

    async def page(_: Request) -> Response:
        return HTMLResponse(PAGE % {"url": url})

    async def nothing(_: Request) -> Response:
        return Response(status_code=204)

    app = Starlette(routes=[Route("/", page), Route("/favicon.ico", nothing)])
    portal_of = start_blocking_portal()
    with portal_of as portal, portal.wrap_async_context_manager(serve(app)) as port:
        yield f"http://{HOST}:{port}/"
