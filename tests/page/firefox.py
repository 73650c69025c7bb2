"""firefox.py - headless Firefox for page-test. Marionette is the socket at which Firefox takes commands.

A message is LENGTH:JSON. A command is [0, number, name, parameters], and its answer is [1, number, error, result]."""
import base64, json, os, shutil, socket, subprocess, time

# 0: any free port. Firefox otherwise ignores more than 200 changes of the address in ten seconds; the walk makes more.
PREFS = {"marionette.port": 0, "dom.navigation.navigationRateLimit.count": 0}


class Firefox:
    name, programs = "Firefox", ("firefox-esr", "firefox")
    media = {"light": ("layout.css.prefers-color-scheme.content-override", 1),
             "dark": ("layout.css.prefers-color-scheme.content-override", 0),
             "reduced motion": ("ui.prefersReducedMotion", 1), "forced colours": ("browser.display.document_color_use", 2)}

    def __init__(self, limit):
        self.limit = limit  # seconds for a walk
        self.path = next((path for path in map(shutil.which, self.programs) if path), None)

    def report(self, folder, width, media):
        """What folder/frame.html writes into its element "report". TimeoutError after the limit."""
        with Session(self.path, folder, dict(self.media[word] for word in media), self.limit) as session:
            session.call("WebDriver:SetWindowRect", width=max(width, 600), height=1000)
            session.call("WebDriver:Navigate", url=f"file://{folder}/frame.html")
            script = """const [done] = arguments, report = document.getElementById("report");
                const look = () => (report.textContent ? done(report.textContent) : setTimeout(look, 20));
                look();"""
            return session.call("WebDriver:ExecuteAsyncScript", script=script, args=[])["value"]

    def pdf(self, folder):
        """folder/copy.html, printed."""
        with Session(self.path, folder, {}, self.limit) as session:
            session.call("WebDriver:Navigate", url=f"file://{folder}/copy.html")
            return base64.b64decode(session.call("WebDriver:Print")["value"])


class Session:
    """A Firefox with a profile of its own in the folder, from `with` to the end of its block."""
    def __init__(self, path, folder, prefs, limit):
        self.profile, self.limit, self.number = os.path.join(folder, "profile"), limit, 0
        os.mkdir(self.profile)
        with open(os.path.join(self.profile, "user.js"), "w", encoding="utf-8") as file:
            for name, value in {**PREFS, **prefs}.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        command = [path, "--headless", "--marionette", "--no-remote", "--profile", self.profile]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, env={**os.environ, "HOME": folder}, **quiet)

    def __enter__(self):
        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port()), timeout=self.limit + 30)
            self.stream = self.socket.makefile("rb")
            self.read()  # it greets
            self.call("WebDriver:NewSession")
            self.call("WebDriver:SetTimeouts", script=self.limit * 1000, pageLoad=self.limit * 1000)
            return self
        except BaseException:
            self.stop()
            raise

    def __exit__(self, error, *_):
        if not error:
            self.call("Marionette:Quit", flags=["eForceQuit"])
            self.process.wait(timeout=self.limit)
        self.stop()

    def stop(self):
        self.process.kill()  # if it is still there
        self.process.wait()

    def port(self):
        """Firefox writes the port into its profile when it listens."""
        for _ in range(self.limit * 10):
            try:
                with open(os.path.join(self.profile, "MarionetteActivePort"), encoding="utf-8") as file:
                    return int(file.read())
            except (FileNotFoundError, ValueError):
                time.sleep(0.1)
        raise TimeoutError("Firefox does not listen")

    def read(self):
        length = b""
        while not length.endswith(b":"):
            byte = self.stream.read(1)
            if not byte:
                raise ConnectionError("Firefox is gone")
            length += byte
        return json.loads(self.stream.read(int(length[:-1])))

    def call(self, command, **parameters):
        self.number += 1
        message = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self.read()
        if error:
            kind = TimeoutError if error["error"] in ("timeout", "script timeout") else RuntimeError
            raise kind(f"{command}: {error['message']}")
        return result
