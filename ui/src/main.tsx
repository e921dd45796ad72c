import { render } from 'preact'
import './theme.css'
import './app.css'
import './theme'
import { App } from './app'
import { stayLive } from './live'
import { keepAddress } from './state'

keepAddress()
stayLive()
render(<App />, document.getElementById('app') as HTMLElement)
