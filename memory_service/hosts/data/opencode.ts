const SETTINGS: Settings = {}
