"""The published data: downloads that break off, lie or fail, a local copy, and which folder a notebook uses."""

import hashlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import typer
from typer.testing import CliRunner

from lib import published
from lib.errors import LitmusError
from lib.published import Published

CONTENT = bytes(range(256)) * 2000


class Files(BaseHTTPRequestHandler):
    """Serves ``served`` with ranges; a path in ``breaks`` is cut off after so many bytes, once."""

    def __init__(self, served, breaks, seen, *rest):
        self.served, self.breaks, self.seen = served, breaks, seen
        super().__init__(*rest)

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.seen.append((self.path, wanted))
        if self.path not in self.served:
            return self.send_error(404)
        body = self.served[self.path]
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if wanted and start >= len(body):
            return self.send_error(416)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : self.breaks.pop(self.path, len(body))])

    def log_message(self, *_):
        pass


class Web:
    """A server on this machine: what it serves, what it breaks off, what it was asked for."""

    def __init__(self):
        self.served, self.breaks, self.seen = {}, {}, []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, self.served, self.breaks, self.seen))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def row(self, file="set/a.txt", content=CONTENT, sha256=None, there=True) -> Published:
        if there:
            self.served[f"/{file}"] = content
        url = f"http://127.0.0.1:{self.server.server_port}/{file}"
        return Published("set", file, url, sha256 or hashlib.sha256(content).hexdigest(), "none", "nobody")


@pytest.fixture
def web():
    web = Web()
    yield web
    web.server.shutdown()
    web.server.server_close()


def test_a_download_gets_its_name_and_is_not_fetched_again(web, tmp_path):
    row = web.row()
    assert published.get([row], tmp_path) == {}
    assert (tmp_path / row.file).read_bytes() == CONTENT
    assert published.get([row], tmp_path) == {}
    assert web.seen == [("/set/a.txt", None)]
    assert list((tmp_path / "set").iterdir()) == [tmp_path / row.file]


def test_a_connection_that_breaks_off_goes_on_where_it_stopped(web, tmp_path):
    row = web.row()
    web.breaks["/set/a.txt"] = 100_000
    assert published.fetch(row, tmp_path) == ""
    assert (tmp_path / row.file).read_bytes() == CONTENT
    assert [wanted for _, wanted in web.seen] == [None, "bytes=100000-"]


def test_a_killed_call_is_continued_by_the_next(web, tmp_path):
    row = web.row()
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.txt.part").write_bytes(CONTENT[:5000])
    assert published.fetch(row, tmp_path) == ""
    assert web.seen == [("/set/a.txt", "bytes=5000-")]
    assert (tmp_path / row.file).read_bytes() == CONTENT


@pytest.mark.parametrize("rubbish", [b"something else", CONTENT + b"too long"])
def test_a_part_that_does_not_belong_is_thrown_away(web, tmp_path, rubbish):
    row = web.row()
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.txt.part").write_bytes(rubbish)
    assert published.fetch(row, tmp_path) == ""
    assert (tmp_path / row.file).read_bytes() == CONTENT


def test_a_wrong_checksum_is_not_kept(web, tmp_path):
    row = web.row(sha256="0" * 64)
    assert "another checksum" in published.fetch(row, tmp_path)
    assert list((tmp_path / "set").iterdir()) == []


def test_a_wrong_download_leaves_the_file_that_was_there(web, tmp_path):
    row = web.row(sha256="0" * 64)
    (tmp_path / "set").mkdir()
    (tmp_path / row.file).write_text("mine")
    published.fetch(row, tmp_path)
    assert (tmp_path / row.file).read_text() == "mine"


def test_one_missing_file_does_not_stop_the_others(web, tmp_path):
    gone, here = web.row("set/gone.txt", there=False), web.row("set/here.txt")
    missing = published.get([gone, here], tmp_path)
    assert list(missing) == ["set/gone.txt"]
    assert "404" in missing["set/gone.txt"]
    assert (tmp_path / "set" / "here.txt").exists()
    said = published.summary([gone, here], missing, tmp_path)
    assert "set: 1 of 2 files" in said
    assert "missing: set/gone.txt: the server answers 404" in said


def test_without_a_network_the_host_is_asked_once(web, tmp_path):
    web.server.shutdown()
    web.server.server_close()
    rows = [web.row(f"set/{number}.txt") for number in range(50)]
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "7.txt").write_bytes(CONTENT)
    missing = published.get(rows, tmp_path)
    assert len(missing) == 49  # the one that was there counts
    (reason,) = set(missing.values())
    assert "cannot be reached" in reason


def test_from_a_local_copy(tmp_path, web, monkeypatch):
    row, other = web.row(), web.row("set/b.txt", b"b")
    copy = tmp_path / "copy of it" / "set"
    copy.mkdir(parents=True)
    (copy / "a.txt").write_bytes(CONTENT)
    missing = published.get([row, other], tmp_path / "into", tmp_path / "copy of it")
    assert list(missing) == ["set/b.txt"]
    assert "not in" in missing["set/b.txt"]
    assert (tmp_path / "into" / row.file).read_bytes() == CONTENT
    assert web.seen == []


def test_the_command_line(tmp_path, web, monkeypatch):
    app = typer.Typer()
    app.command()(published.main)
    monkeypatch.setattr(published, "listed", lambda: [web.row()])

    def call(*words):
        return CliRunner().invoke(app, [*words, "--into", str(tmp_path)])

    assert call("--check").exit_code == 1
    assert web.seen == []
    assert call().exit_code == 0
    assert call("--check").exit_code == 0
    (tmp_path / "set" / "a.txt").write_text("changed")
    checked = call("--check")
    assert checked.exit_code == 1
    assert "its content is not the published one" in checked.stdout
    assert call("--only", "sett").exit_code == 2
    assert "did you mean set?" in call("--only", "sett").stderr
    assert call("--from", "nowhere").exit_code == 2


def test_find(tmp_path, monkeypatch):
    monkeypatch.delenv("LITMUS_DATASETS", raising=False)
    monkeypatch.setattr(published, "PUBLISHED", tmp_path / "published")
    assert published.find() is None
    for name in ("named", "from the environment", "published"):
        (tmp_path / name / "refining-tse" / "ML").mkdir(parents=True)
        (tmp_path / name / "refining-tse" / "ML" / "simple_agrmt_all.jsonl").touch()
    assert published.find() == tmp_path / "published"
    monkeypatch.setenv("LITMUS_DATASETS", str(tmp_path / "from the environment"))
    assert published.find("") == tmp_path / "from the environment"
    assert published.find(str(tmp_path / "named")) == tmp_path / "named"


def test_find_refuses_a_folder_that_is_not_one(tmp_path, monkeypatch):
    with pytest.raises(LitmusError, match="the parameter datasets, is not a folder"):
        published.find(str(tmp_path / "nowhere"))
    with pytest.raises(LitmusError, match="holds none of the published sets"):
        published.find(tmp_path)
    monkeypatch.setenv("LITMUS_DATASETS", str(tmp_path / "nowhere"))
    with pytest.raises(LitmusError, match="environment variable LITMUS_DATASETS, is not a folder"):
        published.find()


def test_the_list_is_well_formed():
    rows = published.listed()
    assert len(rows) == len({row.file for row in rows}) == 103
    assert all(row.file.startswith(row.set + "/") for row in rows)
    assert all(
        len(row.sha256) == 64 and row.url.startswith("https://") and row.licence and row.citation for row in rows
    )
    assert all(row.url.endswith(row.file.rsplit("/", 1)[1]) for row in rows)


def test_the_published_files_have_the_listed_checksums(datasets):
    assert published.get(published.listed(), datasets, only_check=True) == {}


def test_the_command_checks_and_fills_the_folder_that_the_notebooks_read(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "PUBLISHED", tmp_path / "data")
    monkeypatch.delenv("LITMUS_DATASETS", raising=False)
    app = typer.Typer()
    app.command()(published.main)
    assert f"files are missing in {tmp_path / 'data'}" in CliRunner().invoke(app, ["--check"]).stdout
    monkeypatch.setenv("LITMUS_DATASETS", str(tmp_path / "elsewhere"))
    assert f"files are missing in {tmp_path / 'elsewhere'}" in CliRunner().invoke(app, ["--check"]).stdout
    beside = ["--check", "--into", str(tmp_path / "named")]
    assert f"files are missing in {tmp_path / 'named'}" in CliRunner().invoke(app, beside).stdout
    assert not list(tmp_path.iterdir())
