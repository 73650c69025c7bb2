"""chromium.py - headless Chromium for page-test. It prints the report (--dump-dom), so no driver is needed.

Chromium's "headless shell" has the same engine and none of the browser around it (tabs, an address bar, history), which takes
more time than the page does, so it is taken where it is installed."""
import html, re, shutil, subprocess

class Chromium:
    name = "Chromium"
    programs = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
    media = {"light": "--blink-settings=preferredColorScheme=1", "dark": "--blink-settings=preferredColorScheme=0",
             "reduced motion": "--force-prefers-reduced-motion", "forced colours": "--force-high-contrast"}

    def __init__(self, limit):
        self.limit = limit
        self.path = next((path for path in map(shutil.which, self.programs) if path), None)

    def run(self, folder, *arguments):
        command = [self.path, "--headless", "--no-sandbox", "--no-zygote", "--disable-gpu", "--hide-scrollbars", "--disable-ipc-flooding-protection", "--allow-file-access-from-files",
                   f"--user-data-dir={folder}/profile", "--virtual-time-budget=100000000", *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=self.limit, check=False).stdout.decode()

    def report(self, folder, width, media):
        """What folder/frame.html writes into its element "report"."""
        try:
            dom = self.run(folder, f"--window-size={max(width, 600)},900", *[self.media[word] for word in media], "--dump-dom", f"file://{folder}/frame.html")
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        found = re.search(r'<pre id="report">(.+?)</pre>', dom, re.S)
        return html.unescape(found.group(1)) if found else ""

    def pdf(self, folder):
        """folder/copy.html, printed."""
        open(f"{folder}/out.pdf", "wb").close()
        self.run(folder, "--no-pdf-header-footer", f"--print-to-pdf={folder}/out.pdf", f"file://{folder}/copy.html")
        with open(f"{folder}/out.pdf", "rb") as file:
            return file.read()
