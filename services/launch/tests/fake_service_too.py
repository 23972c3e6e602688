"""The same fake service under another name: a second kind."""

from services.launch.tests.fake_service import main

if __name__ == "__main__":
    main()
